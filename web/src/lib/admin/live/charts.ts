/** Which lines the charts of a live board have. */
import * as m from '$lib/text/messages';
import type { ChartLine, ChartRow } from '../charts/chart';
import {
  type LiveSeries,
  type MinuteName,
  SECONDS_KEPT,
  type SecondName,
  tableRows,
} from './series';

export type LiveSpan = 'seconds' | 'minutes';

export interface LiveChart {
  readonly title: string;
  readonly at: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly rows: readonly ChartRow[];
  readonly from: number | undefined;
}

interface Line<Name> {
  readonly name: Name;
  readonly label: () => string;
  readonly look: Omit<ChartLine, 'label' | 'values'>;
}

const HEAT = { colour: '--heat', swatch: 'heat' } as const;
const INK = { colour: '--ink', swatch: 'ink' } as const;
const GOOD = { colour: '--good', swatch: 'good' } as const;
const BAD = { colour: '--bad', swatch: 'bad', isDashed: true } as const;
const FAINT = { colour: '--ink-faint', swatch: 'faint', isDashed: true } as const;

interface Plan {
  readonly title: () => string;
  readonly seconds: readonly Line<SecondName>[];
  readonly minutes: readonly Line<MinuteName>[];
}

const WAITING = { name: 'waiting', label: m.adminLive_waiting, look: HEAT } as const;
const INSIDE = { name: 'inside', label: m.adminLive_inside, look: INK } as const;
const ARRIVALS = { name: 'arrivals', label: m.adminLive_arrivals, look: HEAT } as const;
const ADMITTED = { name: 'admitted', label: m.adminLive_admitted, look: GOOD } as const;
const LEFT = { name: 'left', label: m.adminLive_left, look: FAINT } as const;
const PAYMENTS = { name: 'payments', label: m.adminLive_payments, look: GOOD } as const;
const REFUNDS = { name: 'refunds', label: m.adminLive_refunds, look: FAINT } as const;

const PLANS: readonly Plan[] = [
  {
    title: m.adminLive_chart_room,
    seconds: [WAITING, INSIDE, { name: 'threshold', label: m.adminLive_threshold, look: FAINT }],
    minutes: [WAITING, INSIDE],
  },
  {
    title: m.adminLive_chart_moves,
    seconds: [ARRIVALS, ADMITTED, LEFT],
    minutes: [ARRIVALS, ADMITTED, LEFT],
  },
  {
    title: m.adminLive_chart_payments,
    seconds: [PAYMENTS, { name: 'declined', label: m.adminLive_declined, look: BAD }, REFUNDS],
    minutes: [PAYMENTS, REFUNDS],
  },
  {
    title: m.adminLive_chart_sold,
    seconds: [
      { name: 'sold', label: m.adminLive_sold, look: HEAT },
      { name: 'held', label: m.adminLive_held, look: FAINT },
    ],
    minutes: [{ name: 'charged', label: m.adminLive_charged, look: HEAT }],
  },
];

const ROWS_MAX = 15;

export function liveCharts(series: LiveSeries, span: LiveSpan): LiveChart[] {
  return PLANS.map((plan) => {
    const columns = span === 'seconds' ? series.seconds : series.minutes;
    const wanted = (
      span === 'seconds' ? plan.seconds : plan.minutes
    ) as readonly Line<MinuteName>[];
    const lines = wanted.map(({ name, label, look }) => ({
      label: label(),
      values: (columns as typeof series.minutes)[name],
      ...look,
    }));
    const names = wanted.map(({ name }) => name);
    const step = span === 'seconds' ? 60 : 600;
    const last = series.lastSecond;
    return {
      title: plan.title(),
      at: columns.at,
      lines,
      rows: tableRows(columns as typeof series.minutes, names, step, ROWS_MAX),
      from: span === 'seconds' && last !== null ? last - SECONDS_KEPT : undefined,
    };
  });
}
