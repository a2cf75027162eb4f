import { expect, test } from 'vitest';
import { openingFile } from './calendar';

test('a calendar file escapes its texts and has lines as the standard wants them', () => {
  const file = openingFile(
    { id: 'x', title: 'A, B; C\nD', saleStartsAt: '2026-12-01T10:00:00.5Z', venueName: 'V' },
    'https://urr.example',
  );
  expect(file).toContain('SUMMARY:예매 오픈: A\\, B\\; C\\nD\r\n');
  expect(file).toContain('DTSTART:20261201T100000Z\r\n');
  expect(file.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
});
