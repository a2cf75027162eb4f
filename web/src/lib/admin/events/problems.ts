/** What is wrong with a draft, by step and field. The server decides; this saves a way to it. */
import type { ApiFailure } from '$lib/api/failure';
import * as m from '$lib/text/messages';
import { fromSeoulInput } from '../seoulTime';
import { type EventDraft, wholeNumber } from './draft';

export const STEPS = ['basics', 'place', 'prices', 'times', 'opening', 'rules', 'review'] as const;
export type Step = (typeof STEPS)[number];

/** Sentences by field, such as `title`, `prices.VIP` or `ticketTypes.0.name`. */
export type Problems = Record<string, string>;

type Check = (draft: EventDraft, problems: Problems) => void;

const PRESALE_MS = 48 * 3_600_000;

const CHECKS: Record<Step, Check> = { basics, place, prices, times, opening, rules, review: none };

export function problemsOf(step: Step, draft: EventDraft): Problems {
  const problems: Problems = {};
  CHECKS[step](draft, problems);
  return problems;
}

/** The first step with a problem; null if the draft is complete. */
export function firstIncomplete(draft: EventDraft): Step | null {
  return STEPS.find((step) => Object.keys(problemsOf(step, draft)).length > 0) ?? null;
}

function none() {}

function basics(draft: EventDraft, problems: Problems) {
  if (draft.title.trim() === '') problems.title = m.adminEvents_need_title();
  if (draft.runningMinutes.trim() !== '' && wholeNumber(draft.runningMinutes) === null)
    problems.runningMinutes = m.adminEvents_need_number();
}

function place(draft: EventDraft, problems: Problems) {
  if (draft.venueId === '') problems.venueId = m.adminEvents_need_venue();
  if (draft.kind === 'seated' && draft.hallId === '') problems.hallId = m.adminEvents_need_hall();
}

function prices(draft: EventDraft, problems: Problems) {
  if (draft.kind === 'seated') {
    for (const [grade, price] of Object.entries(draft.prices))
      if (wholeNumber(price) === null) problems[`prices.${grade}`] = m.adminEvents_need_price();
    if (Object.keys(draft.prices).length === 0) problems.prices = m.adminEvents_need_hall();
    return;
  }
  if (draft.ticketTypes.length === 0) problems.ticketTypes = m.adminEvents_need_type();
  draft.ticketTypes.forEach((type, index) => {
    const field = `ticketTypes.${index}`;
    if (type.name.trim() === '') problems[`${field}.name`] = m.adminEvents_need_name();
    if (wholeNumber(type.price) === null) problems[`${field}.price`] = m.adminEvents_need_price();
    if (!wholeNumber(type.total)) problems[`${field}.total`] = m.adminEvents_need_total();
  });
}

function times(draft: EventDraft, problems: Problems) {
  const [start, saleStart, saleEnd] = [draft.startsAt, draft.saleStartsAt, draft.saleEndsAt].map(
    fromSeoulInput,
  );
  if (!start) problems.startsAt = m.adminEvents_need_time();
  if (!saleStart) problems.saleStartsAt = m.adminEvents_need_time();
  if (!saleEnd) problems.saleEndsAt = m.adminEvents_need_time();
  if (saleStart && saleEnd && saleEnd <= saleStart)
    problems.saleEndsAt = m.adminEvents_sale_ends_first();
  else if (start && saleEnd && start < saleEnd)
    problems.saleEndsAt = m.adminEvents_sale_ends_late();
}

function opening(draft: EventDraft, problems: Problems) {
  const [saleStart, saleEnd] = [draft.saleStartsAt, draft.saleEndsAt].map(fromSeoulInput);
  if (draft.hasPresale && draft.artistId === '')
    problems.hasPresale = m.adminEvents_presale_artist();
  else if (
    draft.hasPresale &&
    saleStart &&
    saleEnd &&
    Date.parse(saleEnd) - Date.parse(saleStart) <= PRESALE_MS
  )
    problems.hasPresale = m.adminEvents_presale_short();
  if (draft.isLottery && !wholeNumber(draft.gatheringMinutes))
    problems.gatheringMinutes = m.adminEvents_need_number();
}

function rules(draft: EventDraft, problems: Problems) {
  if (!wholeNumber(draft.seatsPerUserMax)) problems.seatsPerUserMax = m.adminEvents_need_number();
  if (!draft.hasOwnFees) return;
  for (const name of ['graceHours', 'graceDaysBeforeMin'] as const)
    if (wholeNumber(draft[name]) === null) problems[name] = m.adminEvents_need_number();
  draft.bands.forEach((band, index) => {
    for (const name of ['daysBeforeMin', 'percent'] as const)
      if (wholeNumber(band[name]) === null)
        problems[`bands.${index}.${name}`] = m.adminEvents_need_number();
  });
}

/** Which step a refusal of the server belongs to, and which field if it is one. */
const REFUSALS: Record<string, { step: Step; field: string }> = {
  INVALID_TEXT: { step: 'basics', field: 'title' },
  INVALID_IMAGE_URL: { step: 'basics', field: 'posterImageUrl' },
  INVALID_RUNNING_TIME: { step: 'basics', field: 'runningMinutes' },
  UNKNOWN_ARTIST: { step: 'basics', field: 'artistId' },
  INVALID_PLACE: { step: 'place', field: 'venueId' },
  UNKNOWN_VENUE: { step: 'place', field: 'venueId' },
  UNKNOWN_HALL: { step: 'place', field: 'hallId' },
  INVALID_PRICES: { step: 'prices', field: 'prices' },
  INVALID_TICKET_TYPES: { step: 'prices', field: 'ticketTypes' },
  INVALID_SCHEDULE: { step: 'times', field: 'saleEndsAt' },
  EVENT_IN_PAST: { step: 'times', field: 'startsAt' },
  EVENT_BEGUN: { step: 'times', field: 'startsAt' },
  SALE_STARTED: { step: 'times', field: 'saleStartsAt' },
  INVALID_PRESALE: { step: 'opening', field: 'hasPresale' },
  INVALID_SEATS_PER_USER: { step: 'rules', field: 'seatsPerUserMax' },
  INVALID_CANCEL_POLICY: { step: 'rules', field: 'bands' },
};

export function refusalOf(failure: ApiFailure): { step: Step; field: string } | null {
  return REFUSALS[failure.code] ?? null;
}
