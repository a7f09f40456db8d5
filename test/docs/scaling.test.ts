import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { doorplateHere } from '../support/doorplate.ts';

const page = readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8');
const EXAMPLE = /(<!-- example -->\n)[\s\S]*?(<!-- end of example -->)/;
const TRAFFIC = /doorplate capacity --calibrate (--lookups.+)/.exec(page)?.[1]?.split(' ') ?? [];

describe('docs/scaling.md', () => {
  it('shows what the command prints with the shipped figures', async () => {
    const env = { DATA_DIR: join(tmpdir(), 'doorplate-without-calibration') };
    const { code, stdout } = await doorplateHere(['capacity', ...TRAFFIC], env);
    expect(code).toBe(0);
    const shown = page.replace(
      EXAMPLE,
      (_, before, after) => `${before}\`\`\`text\n${stdout}\`\`\`\n${after}`,
    );
    await expect(shown).toMatchFileSnapshot('../../docs/scaling.md');
  });
});
