/** The opening of a sale as a calendar file, with a reminder ten minutes before. */
import type { Schemas } from '$lib/api/client';
import { saveFile } from '$lib/saveFile';
import * as m from '$lib/text/messages';

export function openingFile(
  event: Pick<Schemas['EventView'], 'id' | 'title' | 'saleStartsAt' | 'venueName'>,
  origin: string,
): string {
  const stamp = (iso: string) => `${iso.slice(0, 19).replace(/[-:]/g, '')}Z`;
  const escape = (text: string) => text.replace(/[\\;,]/g, '\\$&').replace(/\r?\n/g, '\\n');
  return [
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    'PRODID:-//URR//Sale//EN',
    'BEGIN:VEVENT',
    `UID:${event.id}@urr`,
    `DTSTAMP:${stamp(event.saleStartsAt)}`,
    `DTSTART:${stamp(event.saleStartsAt)}`,
    `SUMMARY:${escape(m.event_calendar_summary({ title: event.title }))}`,
    `URL:${origin}/events/${event.id}`,
    'BEGIN:VALARM',
    'ACTION:DISPLAY',
    `DESCRIPTION:${escape(m.event_calendar_title())}`,
    'TRIGGER:-PT10M',
    'END:VALARM',
    'END:VEVENT',
    'END:VCALENDAR',
    '',
  ].join('\r\n');
}

export function saveOpening(event: Schemas['EventView']): void {
  const text = openingFile(event, location.origin);
  saveFile('urr-sale.ics', new Blob([text], { type: 'text/calendar' }));
}
