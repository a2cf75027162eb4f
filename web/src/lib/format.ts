/** Money and dates as the pages show them. Times are Korean: that is where the venues are. */
import { locale } from '$lib/text/locale';

const TIME_ZONE = 'Asia/Seoul';
const formats = new Map<string, Intl.DateTimeFormat>();

function format(name: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${locale()} ${name}`;
  let found = formats.get(key);
  if (!found) {
    const tag = locale() === 'en' ? 'en-GB' : 'ko-KR';
    found = new Intl.DateTimeFormat(tag, { timeZone: TIME_ZONE, ...options });
    formats.set(key, found);
  }
  return found;
}

/** 66,000원 or ₩66,000. */
export function won(amount: number): string {
  const digits = amount.toLocaleString('en-US');
  return locale() === 'en' ? `₩${digits}` : `${digits}원`;
}

/** 66,000–165,000원. */
export function wonRange(min: number, max: number): string {
  if (min === max) return won(min);
  const [from, to] = [min.toLocaleString('en-US'), max.toLocaleString('en-US')];
  return locale() === 'en' ? `₩${from}–${to}` : `${from}–${to}원`;
}

export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** 2026년 12월 7일 (월) 19:30. */
export function dateTime(iso: string): string {
  return `${longDate(iso)} ${timeOfDay(iso)}`;
}

export function longDate(iso: string): string {
  const options = { year: 'numeric', month: 'long', day: 'numeric', weekday: 'short' } as const;
  return withWeekday(format('long', options), iso);
}

/** 12월 7일 (월). */
export function shortDate(iso: string): string {
  const options = { month: 'short', day: 'numeric', weekday: 'short' } as const;
  return withWeekday(format('short', options), iso);
}

/** In Korean the weekday stands in parentheses; some browsers leave them out. */
function withWeekday(dates: Intl.DateTimeFormat, iso: string): string {
  const text = dates.format(new Date(iso));
  return locale() === 'en' ? text : text.replace(/\(?([일월화수목금토])\)?$/, '($1)');
}

export function timeOfDay(iso: string): string {
  const options = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
  return format('time', options).format(new Date(iso));
}

/** What ends at midnight lasts through the day before: 12월 6일 (일), otherwise 12월 7일 (월) 19:30. */
export function lastMoment(iso: string): string {
  const end = Date.parse(iso);
  if (timeOfDay(iso) === '00:00') return shortDate(new Date(end - 1).toISOString());
  return `${shortDate(iso)} ${timeOfDay(iso)}`;
}

/** The Korean calendar day as `2026-12-07`. */
export function koreanDay(iso: string | number): string {
  return new Intl.DateTimeFormat('en-CA', { timeZone: TIME_ZONE }).format(new Date(iso));
}
