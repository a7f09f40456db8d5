import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { figuresSchema, KINDS } from '../../cli/capacity/figures.ts';
import { doorplateHere } from '../support/doorplate.ts';

const TRAFFIC = ['--lookups-per-day', '1000000', '--visits-per-day', '200000', '--reveals-per-day', '5000'];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'doorplate-capacity-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const capacity = (...args: string[]) =>
  doorplateHere(['capacity', ...TRAFFIC, ...args], { DATA_DIR: join(folder, 'data') });

describe('doorplate capacity --calibrate', () => {
  it('measures this machine, keeps the figures and uses them in later calls', async () => {
    const file = join(folder, 'capacity.json');
    const measured = await capacity(
      '--endpoints',
      '1',
      '--calibrate',
      '--seconds',
      '1',
      '--calibration',
      file,
    );
    expect(measured).toMatchObject({ code: 0, stdout: expect.stringContaining("installation's machine") });
    const figures = figuresSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
    for (const kind of KINDS)
      expect(figures.kinds[kind].cpu.api + figures.kinds[kind].cpu.postgresql).toBeGreaterThan(0);
    expect(figures.kinds.visit.applied.visits).toBeGreaterThanOrEqual(1);
    expect(figures.processes.workers.connections).toBeGreaterThan(0);
    const later = await capacity('--endpoints', '1', '--calibration', file);
    expect(later.stdout).toBe(measured.stdout);
  }, 120_000);
});
