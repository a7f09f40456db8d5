import { expect, it, onTestFinished, vi } from 'vitest';
import { print } from '../../cli/print.ts';

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
