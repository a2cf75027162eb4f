/**
 * The commitment of a draw, as this device saw it first. A file proves little to somebody who does
 * not know what was promised before.
 */
export interface CommitmentNote {
  readonly commitment: string;
  readonly seenAt: string;
}

const key = (eventId: string) => `urr.draw.${eventId}`;

export function readNote(eventId: string): CommitmentNote | null {
  try {
    return JSON.parse(localStorage.getItem(key(eventId)) ?? 'null') as CommitmentNote | null;
  } catch {
    return null;
  }
}

/** Writes down what is promised. What was written first stays. */
export function noteCommitment(eventId: string, commitment: string, seenAt: string): void {
  if (readNote(eventId)) return;
  try {
    localStorage.setItem(key(eventId), JSON.stringify({ commitment, seenAt }));
  } catch {
    // Without storage the fan can still write it down.
  }
}
