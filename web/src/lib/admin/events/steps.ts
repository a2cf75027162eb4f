import * as m from '$lib/text/messages';
import type { Step } from './problems';

export function stepLabels(): Record<Step, string> {
  return {
    basics: m.adminEvents_step_basics(),
    place: m.adminEvents_step_place(),
    prices: m.adminEvents_step_prices(),
    times: m.adminEvents_step_times(),
    opening: m.adminEvents_step_opening(),
    rules: m.adminEvents_step_rules(),
    review: m.adminEvents_step_review(),
  };
}
