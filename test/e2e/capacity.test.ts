import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { doorplateHere } from '../support/doorplate.ts';

const TRAFFIC = ['--lookups-per-day', '1000000', '--visits-per-day', '200000', '--reveals-per-day', '5000'];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'doorplate-capacity-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const capacity = (...args: string[]) =>
  doorplateHere(['capacity', ...TRAFFIC, ...args], { DATA_DIR: join(folder, 'data') });

describe('doorplate capacity', () => {
  it('prints both stores and says that the figures are not of this machine', async () => {
    const { code, stdout, stderr } = await capacity('--endpoints', '20');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('On PostgreSQL alone');
    expect(stdout).toContain('On an EventStoreDB cluster of three');
    expect(stdout).toContain('not on yours');
    expect(stdout).toContain('1,000×');
  });

  it('prints the same as JSON, each figure with how it came about', async () => {
    const { code, stdout } = await capacity('--endpoints', '20', '--json');
    expect(code).toBe(0);
    const { stores } = JSON.parse(stdout);
    expect(stores).toMatchObject([
      { store: 'postgresql', figures: { source: 'shipped', how: 'measured' } },
      { store: 'eventstoredb', figures: { source: 'shipped', how: 'measured' } },
    ]);
    expect(stores[0].steps.map(({ times, how }: { times: number; how: string }) => [times, how])).toEqual(
      [1, 10, 100, 1_000].map((times) => [times, 'calculated']),
    );
  });

  it('ends with 2 and an example where an option is missing or no number', async () => {
    const missing = await capacity();
    expect(missing.code).toBe(2);
    expect(missing.stderr).toContain('--endpoints');
    expect(missing.stderr).toContain('example: doorplate capacity --lookups-per-day');
    expect(await capacity('--endpoints', 'many')).toMatchObject({ code: 2 });
    expect(await capacity('--endpoints', '1', '--new-percent', '101')).toMatchObject({ code: 2 });
  });

  it('ends with 1 where the named calibration is missing or of another kind', async () => {
    const file = join(folder, 'other.json');
    expect(await capacity('--endpoints', '1', '--calibration', file)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(file),
    });
    writeFileSync(file, '{"measured_at":"today"}');
    expect(await capacity('--endpoints', '1', '--calibration', file)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('holds no figures of this release; measure again with --calibrate'),
    });
  });
});
