/** Outcomes of a scan in the language of the page. */
import { timeOfDay } from '$lib/format';
import * as m from '$lib/text/messages';
import type { Outcome } from './judge';
import type { StoredScan } from './store';

const HEADINGS: Record<Outcome, () => string> = {
  accepted: m.adminCheckIn_accepted,
  duplicate: m.adminCheckIn_duplicate,
  not_inside: m.adminCheckIn_not_inside,
  reentry_not_allowed: m.adminCheckIn_reentry_not_allowed,
  cancelled: m.adminCheckIn_cancelled,
  reissued: m.adminCheckIn_reissued,
  unknown: m.adminCheckIn_unknown,
  wrong_event: m.adminCheckIn_wrong_event,
  forged: m.adminCheckIn_forged,
  scan_id_reused: m.adminCheckIn_invalid,
  invalid: m.adminCheckIn_invalid,
  unchecked: m.adminCheckIn_unchecked,
};

export function heading({ outcome, direction, earlier }: StoredScan): string {
  if (outcome !== 'accepted') return HEADINGS[outcome]();
  if (earlier) return m.adminCheckIn_conflict();
  return direction === 'exit' ? m.adminCheckIn_accepted_exit() : m.adminCheckIn_accepted();
}

/** What else the staff should know; empty if there is nothing. */
export function explanation({ outcome, earlier, isQueued }: StoredScan): string {
  if (earlier?.at) {
    const time = timeOfDay(earlier.at);
    if (outcome === 'accepted')
      return m.adminCheckIn_conflict_text({ door: earlier.door || '–', time });
    return earlier.door
      ? m.adminCheckIn_earlier({ door: earlier.door, time })
      : m.adminCheckIn_earlier_no_door({ time });
  }
  if (outcome === 'reissued') return m.adminCheckIn_reissued_text();
  if (outcome === 'unchecked') return m.adminCheckIn_unchecked_text();
  return isQueued ? m.adminCheckIn_accepted_offline() : '';
}

/** An accepted scan is good unless another door let the same ticket in. */
export function tone({ outcome, earlier }: StoredScan): 'good' | 'warn' | 'bad' {
  if (outcome !== 'accepted') return 'bad';
  return earlier ? 'warn' : 'good';
}
