/** Scrolls a row of links sideways so that the current one can be seen. */
export function showCurrent(row: HTMLElement): void {
  const current = row.querySelector('[aria-current]');
  if (!current) return;
  const [outer, inner] = [row.getBoundingClientRect(), current.getBoundingClientRect()];
  row.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
}
