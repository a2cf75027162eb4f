/** What keys do on the drawing board. */
import type { Editor } from './editor.svelte';
import type { EditorMap } from './editorMap';
import { ANGLE_STEP_DEGREES, GRID_CM } from './snap';

const ARROWS: Record<string, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** True if the key meant something, so that the browser need not look at it. */
export function onBoardKey(event: KeyboardEvent, editor: Editor, map: EditorMap): boolean {
  if (event.ctrlKey || event.metaKey) return onControlKey(event, editor);
  const arrow = ARROWS[event.key];
  if (arrow) return onArrow(arrow, event, editor);
  const step = editor.isSnapping ? ANGLE_STEP_DEGREES : 1;
  const commands: Record<string, () => void> = {
    v: () => (editor.tool = 'select'),
    h: () => (editor.tool = 'hand'),
    s: () => (editor.tool = 'rectangle'),
    p: () => (editor.tool = 'polygon'),
    b: () => (editor.tool = 'brush'),
    g: () => (editor.isSnapping = !editor.isSnapping),
    r: () => editor.turn(event.shiftKey ? -step : step),
    m: () => editor.mirror(event.shiftKey ? 'stage' : 'selection'),
    n: () => editor.selectNext(event.shiftKey ? -1 : 1),
    a: () => editor.addBehind(),
    '+': () => map.zoomBy(1.4),
    '=': () => map.zoomBy(1.4),
    '-': () => map.zoomBy(1 / 1.4),
    '0': () => map.showAll(),
    ' ': () => (editor.level === 'sections' ? editor.selectNext(1) : editor.toggleCursor()),
    delete: () => editor.deleteSelected(),
    backspace: () => map.undoCorner() || editor.deleteSelected(),
    enter: () => (editor.tool === 'brush' ? editor.paint(editor.selection) : map.finishPolygon()),
    escape: () => map.cancel() || editor.select(new Map()),
  };
  const command = commands[event.key.toLowerCase()];
  if (!command || event.altKey) return false;
  command();
  return true;
}

/** Sections are moved; among rows and seats the cursor goes, and Alt moves rows aside. */
function onArrow([x, y]: readonly [number, number], event: KeyboardEvent, editor: Editor): boolean {
  if (editor.level !== 'sections' && !event.altKey) {
    editor.moveCursor(x, y, event.shiftKey);
    return true;
  }
  if (editor.selection.size === 0) return false;
  const step = event.shiftKey ? 10 * GRID_CM : editor.isSnapping ? GRID_CM : 1;
  editor.move(x * step, y * step, `arrows/${[...editor.selection.keys()].join()}`);
  return true;
}

function onControlKey(event: KeyboardEvent, editor: Editor): boolean {
  const commands: Record<string, () => void> = {
    z: () => (event.shiftKey ? editor.redo() : editor.undo()),
    y: () => editor.redo(),
    c: () => editor.copy(),
    x: () => {
      editor.copy();
      editor.deleteSelected();
    },
    v: () => editor.paste(),
    d: () => editor.duplicate(),
    a: () => editor.selectAll(),
  };
  const command = commands[event.key.toLowerCase()];
  command?.();
  return command !== undefined;
}
