/** Short messages about something that has just happened. */
export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: 'good' | 'bad';
}

const SHOWN_MS = 6_000;
let lastId = 0;
let shown = $state<Toast[]>([]);

export const toasts = {
  get shown(): readonly Toast[] {
    return shown;
  },
};

export function toast(text: string, kind: Toast['kind'] = 'good'): void {
  const id = (lastId += 1);
  shown = [...shown.slice(-2), { id, text, kind }];
  setTimeout(() => dismissToast(id), SHOWN_MS);
}

export function dismissToast(id: number): void {
  shown = shown.filter((one) => one.id !== id);
}
