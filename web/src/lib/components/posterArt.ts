/**
 * Art for an event or artist without a picture, always the same for the same id. The motif is the
 * line of a queue that folds into ㄹ, with people in it.
 */
export interface PosterArt {
  readonly ground: string;
  readonly line: string;
  readonly dot: string;
  readonly path: string;
  readonly lineWidth: number;
  readonly people: readonly { readonly x: number; readonly y: number }[];
}

const PALETTES = [
  { ground: '#1b1030', line: '#ff4b26', dot: '#ffd9a8' },
  { ground: '#ffcf3f', line: '#131418', dot: '#ff4b26' },
  { ground: '#0c3b3a', line: '#7be0c3', dot: '#fff4d6' },
  { ground: '#ff8a6d', line: '#3b0f0a', dot: '#ffffff' },
  { ground: '#1e2a78', line: '#9db8ff', dot: '#ffcf3f' },
  { ground: '#e8e4ff', line: '#5b2be0', dot: '#ff4b26' },
] as const;

/** FNV-1a, then xorshift: few lines, and well spread for ids that differ in one digit. */
function randomOf(text: string): () => number {
  let state = 0x811c9dc5;
  for (const character of text) {
    state ^= character.codePointAt(0) ?? 0;
    state = Math.imul(state, 0x01000193);
  }
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 0x1_0000_0000;
  };
}

/** On a canvas of 300 × 400. */
export function posterArt(id: string): PosterArt {
  const random = randomOf(id);
  for (let warmUp = 0; warmUp < 8; warmUp++) random();
  const palette = PALETTES[Math.floor(random() * PALETTES.length)] ?? PALETTES[0];
  const rows = 3 + Math.floor(random() * 4);
  const step = 400 / (rows + 1);
  const inset = 20 + random() * 40;
  const [left, right] = [inset, 300 - inset];
  let path = random() < 0.5 ? `M-40 ${step}` : `M${left} ${step}`;
  const people = [];
  for (let row = 1; row <= rows; row++) {
    const isRightward = row % 2 === 1;
    path += `H${isRightward ? right : left}`;
    if (row < rows) path += `V${step * (row + 1)}`;
    const crowd = 2 + Math.floor(random() * 5);
    for (let person = 0; person < crowd; person++)
      people.push({ x: left + random() * (right - left), y: step * row });
  }
  return { ...palette, path, lineWidth: step * (0.42 + random() * 0.3), people };
}
