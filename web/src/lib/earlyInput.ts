/**
 * Repeats what a person typed and chose before the scripts of the page ran, so that nothing is
 * lost on a slow connection. `app.html` keeps it until then.
 */
export function repeatEarlyInput(): void {
  const kept = window.urrInput?.() ?? [];
  delete window.urrInput;
  for (const { type, target, value, checked, submitter } of kept) {
    if (!target.isConnected) continue;
    if (type === 'submit') (target as HTMLFormElement).requestSubmit(submitter);
    else {
      setField(target, value, checked);
      target.dispatchEvent(new Event(type, { bubbles: true }));
    }
  }
}

/** Rendering has put the page's own value into the field. A file cannot be put back. */
function setField(target: HTMLElement, value?: string, checked?: boolean): void {
  if (target instanceof HTMLInputElement && target.type === 'file') return;
  if (target instanceof HTMLInputElement && checked !== undefined) target.checked = checked;
  if (value !== undefined && 'value' in target) target.value = value;
}
