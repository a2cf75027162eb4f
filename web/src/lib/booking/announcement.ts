/** When a running timer is read out: two minutes, one minute and twenty seconds before its end. */
import * as m from '$lib/text/messages';

export const FIRST_MARK_SECONDS = 120;

/** What to say when the seconds left go from `before` to `now`; null if there is nothing to say. */
export function announcementAt(before: number, now: number, label: string): string | null {
  const passed = (mark: number) => before > mark && now <= mark && now > 0;
  if (passed(20)) return m.timer_20_seconds({ label });
  if (passed(60)) return m.timer_1_minute({ label });
  if (passed(FIRST_MARK_SECONDS)) return m.timer_2_minutes({ label });
  return null;
}
