import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { csvFile } from '../../cli/analytics/export-view.ts';
import type { View } from '../../cli/analytics/views.ts';

it('escapes texts that a spreadsheet would treat as formulas, and leaves numbers unchanged', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'doorplate-csv-'));
  const path = join(folder, 'x.csv');
  const file = await csvFile(path, { columns: [{ name: 'name' }, { name: 'n' }] } as unknown as View);
  const texts = [
    '=1+1',
    '+1',
    '-1',
    '@SUM(A1)',
    '\tx',
    '=HYPERLINK("x","y")',
    'a=b',
    '',
    '＝1',
    '＠SUM(A1)',
    'a\n=1',
    '\n=1',
  ];
  await file.write(texts.map((text) => [text, -1]));
  await file.close();
  expect(readFileSync(path, 'utf8').split(',-1\n')).toEqual([
    `name,n\n'=1+1`,
    `'+1`,
    `'-1`,
    `'@SUM(A1)`,
    `'\tx`,
    `"'=HYPERLINK(""x"",""y"")"`,
    'a=b',
    '""',
    `'＝1`,
    `'＠SUM(A1)`,
    '"a\n=1"',
    `"'\n=1"`,
    '',
  ]);
  rmSync(folder, { recursive: true });
});
