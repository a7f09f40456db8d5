import { expect, it, onTestFinished, vi } from 'vitest';
import { lines, print, table } from '../../cli/print.ts';

const OUTSIDE = 'A\u001B]0;title\u0007\u009B2J\u202E\r\nB é';

it.each([
  ['a list', [{ name: OUTSIDE }], false],
  ['a record', { name: OUTSIDE }, false],
  ['JSON', { name: OUTSIDE }, true],
] as const)(
  'escapes control characters of outside text in %s, because a terminal obeys them',
  (_of, value, json) => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    onTestFinished(() => write.mockRestore());
    print(value, json);
    const text = write.mock.calls.map(([chunk]) => String(chunk)).join('');
    expect(text.trimEnd()).toMatch(/A\\u001b\]0;title\\u0007\\u009b2J\\u202e(?:\\u000d|\\r)\\nB é/);
    if (json) expect(JSON.parse(text)).toEqual(value);
  },
);

it('aligns a table, with numbers on the right and times as people write them', () => {
  const rows = [
    { name: 'a', at: '2026-11-28T09:05:00.000Z', n: 5, none: null },
    { name: 'long name', at: new Date('2026-01-02T00:00:00Z'), n: 1_500, none: null },
  ];
  expect(table(rows).split('\n')).toEqual([
    'name       at                         n  none',
    'a          28 Nov 2026, 09:05 UTC     5     -',
    'long name  2 Jan 2026, 00:00 UTC   1500     -',
  ]);
  expect(lines({ id: 'x', created_at: '2026-11-28T09:05:00Z' })).toBe(
    'id          x\ncreated_at  28 Nov 2026, 09:05 UTC',
  );
});
