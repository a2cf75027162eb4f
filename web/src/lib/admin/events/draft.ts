/** An event that is being written: what was typed, as typed, so that nothing is lost on the way. */
import type { Schemas } from '$lib/api/client';
import { fromSeoulInput, toSeoulInput } from '../seoulTime';

export interface TicketTypeDraft {
  /** Names the row while it is edited. */
  readonly key: string;
  name: string;
  description: string;
  price: string;
  total: string;
}

export interface FeeBandDraft {
  readonly key: string;
  daysBeforeMin: string;
  percent: string;
  freeDays: string;
  ticketFeeMax: string;
}

export interface EventDraft {
  title: string;
  description: string;
  artistId: string;
  ageRating: string;
  runningMinutes: string;
  posterImageUrl: string;
  notices: string;
  /** A line for each performer: the name, and behind a slash the role. */
  casting: string;
  kind: 'seated' | 'standing';
  venueId: string;
  hallId: string;
  /** Won by grade. */
  prices: Record<string, string>;
  ticketTypes: TicketTypeDraft[];
  /** Times in Korea, as `2026-12-07T19:30`. */
  startsAt: string;
  saleStartsAt: string;
  saleEndsAt: string;
  hasPresale: boolean;
  isLottery: boolean;
  gatheringMinutes: string;
  seatsPerUserMax: string;
  requiresIdentity: boolean;
  hasOwnFees: boolean;
  graceHours: string;
  graceDaysBeforeMin: string;
  bands: FeeBandDraft[];
}

export const AGE_RATINGS = ['all', '7', '12', '15', '19'] as const;

let lastKey = 0;
function nextKey(): string {
  lastKey += 1;
  return `${Date.now().toString(36)}-${lastKey}`;
}

export function newTicketType(): TicketTypeDraft {
  return { key: nextKey(), name: '', description: '', price: '', total: '' };
}

export function newBand(daysBeforeMin = '', percent = ''): FeeBandDraft {
  return { key: nextKey(), daysBeforeMin, percent, freeDays: '', ticketFeeMax: '' };
}

export function emptyDraft(): EventDraft {
  return {
    title: '',
    description: '',
    artistId: '',
    ageRating: 'all',
    runningMinutes: '',
    posterImageUrl: '',
    notices: '',
    casting: '',
    kind: 'seated',
    venueId: '',
    hallId: '',
    prices: {},
    ticketTypes: [newTicketType()],
    startsAt: '',
    saleStartsAt: '',
    saleEndsAt: '',
    hasPresale: false,
    isLottery: false,
    gatheringMinutes: '60',
    seatsPerUserMax: '4',
    requiresIdentity: false,
    hasOwnFees: false,
    graceHours: '24',
    graceDaysBeforeMin: '3',
    bands: [newBand('10', '10'), newBand('3', '20'), newBand('0', '90')],
  };
}

export function isEmptyDraft(draft: EventDraft): boolean {
  const { title, description, venueId, startsAt, saleStartsAt, posterImageUrl } = draft;
  return [title, description, venueId, startsAt, saleStartsAt, posterImageUrl].every(
    (text) => text.trim() === '',
  );
}

/** The draft of an event that exists. Without times, it is the beginning of another event. */
export function draftOf(event: Schemas['AdminEventView'], withTimes: boolean): EventDraft {
  const policy = event.cancelPolicy;
  const empty = emptyDraft();
  return {
    ...empty,
    title: event.title,
    description: event.description,
    artistId: event.artistId ?? '',
    ageRating: event.ageRating,
    runningMinutes: event.runningMinutes ? String(event.runningMinutes) : '',
    posterImageUrl: event.posterImageUrl ?? '',
    notices: event.notices ?? '',
    casting: event.casting.map(({ name, role }) => (role ? `${name} / ${role}` : name)).join('\n'),
    kind: event.kind === 'standing' ? 'standing' : 'seated',
    venueId: event.venueId,
    hallId: event.hallId ?? '',
    prices: Object.fromEntries(
      Object.entries(event.prices).map(([grade, price]) => [grade, String(price)]),
    ),
    ticketTypes: event.ticketTypes.map(({ name, description, price, total }) => ({
      key: nextKey(),
      name,
      description,
      price: String(price),
      total: String(total),
    })),
    startsAt: withTimes ? toSeoulInput(event.startsAt) : '',
    saleStartsAt: withTimes ? toSeoulInput(event.saleStartsAt) : '',
    saleEndsAt: withTimes ? toSeoulInput(event.saleEndsAt) : '',
    hasPresale: event.hasPresale,
    seatsPerUserMax: String(event.seatsPerUserMax),
    requiresIdentity: event.requiresIdentity,
    hasOwnFees: Boolean(policy),
    graceHours: policy ? String(policy.graceHours) : empty.graceHours,
    graceDaysBeforeMin: policy ? String(policy.graceDaysBeforeMin) : empty.graceDaysBeforeMin,
    bands: policy
      ? policy.bands.map((band) => ({
          key: nextKey(),
          daysBeforeMin: String(band.daysBeforeMin),
          percent: String(band.percent),
          freeDays: text(band.freeDays),
          ticketFeeMax: text(band.ticketFeeMax),
        }))
      : empty.bands,
  };
}

export function performers(typed: string): Schemas['Performer'][] {
  const lines = typed.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => {
    const [name = '', ...role] = line.split('/');
    return { name: name.trim(), role: role.join('/').trim() };
  });
}

function text(number: number | null | undefined): string {
  return typeof number === 'number' ? String(number) : '';
}

/** A number as people type it: `66,000`. Null if it is none. */
export function wholeNumber(typed: string): number | null {
  const plain = typed.replace(/[\s,]/g, '');
  return /^\d{1,9}$/.test(plain) ? Number(plain) : null;
}

function cancelPolicy(draft: EventDraft): Schemas['CancelPolicyBody'] {
  return {
    graceHours: wholeNumber(draft.graceHours) ?? 0,
    graceDaysBeforeMin: wholeNumber(draft.graceDaysBeforeMin) ?? 0,
    bands: draft.bands.map((band) => ({
      daysBeforeMin: wholeNumber(band.daysBeforeMin) ?? 0,
      percent: wholeNumber(band.percent) ?? 0,
      freeDays: wholeNumber(band.freeDays),
      ticketFeeMax: wholeNumber(band.ticketFeeMax),
    })),
  };
}

/** What every event has, new or not. */
function commonFields(draft: EventDraft) {
  return {
    title: draft.title,
    description: draft.description,
    ageRating: draft.ageRating,
    runningMinutes: wholeNumber(draft.runningMinutes),
    posterImageUrl: draft.posterImageUrl,
    notices: draft.notices,
    startsAt: fromSeoulInput(draft.startsAt) ?? '',
    saleStartsAt: fromSeoulInput(draft.saleStartsAt) ?? '',
    saleEndsAt: fromSeoulInput(draft.saleEndsAt) ?? '',
    hasPresale: draft.hasPresale,
    seatsPerUserMax: wholeNumber(draft.seatsPerUserMax),
    requiresIdentity: draft.requiresIdentity,
  };
}

export function createBody(draft: EventDraft): Schemas['CreateEventBody'] {
  const place =
    draft.kind === 'seated'
      ? {
          hallId: draft.hallId,
          prices: Object.fromEntries(
            Object.entries(draft.prices).map(([grade, price]) => [grade, wholeNumber(price) ?? 0]),
          ),
        }
      : {
          venueId: draft.venueId,
          ticketTypes: draft.ticketTypes.map(({ name, description, price, total }) => ({
            name,
            description,
            price: wholeNumber(price) ?? 0,
            total: wholeNumber(total) ?? 0,
          })),
        };
  return {
    ...commonFields(draft),
    ...place,
    casting: performers(draft.casting),
    artistId: draft.artistId || null,
    ...(draft.hasOwnFees && { cancelPolicy: cancelPolicy(draft) }),
  };
}

/** Only what differs, so that fields that are fixed by now are not touched. */
export function editBody(
  draft: EventDraft,
  before: EventDraft,
  revision: number,
): Schemas['EditEventBody'] {
  const [now, then] = [commonFields(draft), commonFields(before)];
  const changed = Object.entries(now).filter(
    ([name, value]) => value !== then[name as keyof typeof then],
  );
  const [fees, feesThen] = [draft, before].map((one) =>
    one.hasOwnFees ? JSON.stringify(cancelPolicy(one)) : '',
  );
  return {
    revision,
    ...Object.fromEntries(changed),
    ...(draft.casting !== before.casting && { casting: performers(draft.casting) }),
    ...(draft.artistId !== before.artistId &&
      (draft.artistId ? { artistId: draft.artistId } : { artistName: '' })),
    ...(fees !== feesThen && draft.hasOwnFees && { cancelPolicy: cancelPolicy(draft) }),
  };
}
