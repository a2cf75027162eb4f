/**
 * The text of a ticket's QR code, `URR1.<what>.<signature>`: what it says, and whether we signed it.
 * The server's `check_in/signature.rs` describes it.
 */
const PREFIX = 'URR1.';
const WHAT_BYTES = 40;
const STANDING = 0xffffffff;

export interface SignedTicket {
  readonly ticketId: string;
  readonly eventId: string;
  /** Null: a standing ticket. */
  readonly seatId: number | null;
  readonly issue: number;
}

/** A code that was read, with what its signature is over. */
export interface ReadCode {
  readonly ticket: SignedTicket;
  readonly signed: Uint8Array<ArrayBuffer>;
  readonly signature: Uint8Array<ArrayBuffer>;
}

/** Null if the text is none of our codes. */
export function readCode(text: string): ReadCode | null {
  const end = text.lastIndexOf('.');
  if (!text.startsWith(PREFIX) || end <= PREFIX.length) return null;
  const what = fromBase64Url(text.slice(PREFIX.length, end));
  const signature = fromBase64Url(text.slice(end + 1));
  if (what?.length !== WHAT_BYTES || signature?.length !== 64) return null;
  const view = new DataView(what.buffer);
  const seatId = view.getUint32(32);
  return {
    ticket: {
      ticketId: uuid(what.subarray(0, 16)),
      eventId: uuid(what.subarray(16, 32)),
      seatId: seatId === STANDING ? null : seatId,
      issue: view.getUint32(36),
    },
    signed: new TextEncoder().encode(text.slice(0, end)),
    signature,
  };
}

/** Whether one of the keys signed the code. A phone without Ed25519 loads it. */
export async function isSigned(code: ReadCode, publicKeys: readonly string[]): Promise<boolean> {
  for (const text of publicKeys) {
    const key = fromBase64Url(text);
    if (key && (await verify(key, code))) return true;
  }
  return false;
}

async function verify(key: Uint8Array<ArrayBuffer>, code: ReadCode): Promise<boolean> {
  try {
    const imported = await crypto.subtle.importKey('raw', key, 'Ed25519', false, ['verify']);
    return await crypto.subtle.verify('Ed25519', imported, code.signature, code.signed);
  } catch {
    const { ed25519 } = await import('@noble/curves/ed25519.js');
    return ed25519.verify(code.signature, code.signed, key);
  }
}

const NUMBER = /^T-?([0-9A-Z]{4})-?([0-9A-Z]{4})-?([0-9A-Z]{4})$/;

/** The number of a ticket, however it is typed; null if it is none. */
export function readNumber(text: string): string | null {
  const parts = NUMBER.exec(text.trim().toUpperCase());
  return parts && `T-${parts.slice(1).join('-')}`;
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[\w-]*$/.test(text)) return null;
  try {
    const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}

function uuid(bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
