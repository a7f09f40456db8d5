import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { type Config, loadConfig } from '../platform/config/config.ts';
import { openDataFolder } from '../platform/config/data-folder.ts';
import { readText } from '../platform/text-file.ts';
import { type Figures, figuresSchema, scaledTo } from './capacity/figures.ts';
import type { Settings } from './capacity/limits.ts';
import type { Store, Traffic } from './capacity/model.ts';
import { jsonOf, type Measured, pageOf, reportOf } from './capacity/report.ts';
import shipped from './capacity/shipped.json' with { type: 'json' };
import { wholeFrom } from './options.ts';
import { printable } from './print.ts';
import { progressBar } from './progress.ts';
import { Refused } from './session.ts';

interface CapacityOptions {
  readonly lookupsPerDay: number;
  readonly visitsPerDay: number;
  readonly revealsPerDay: number;
  readonly endpoints: number;
  readonly newPercent: number;
  readonly sends: number;
  readonly calibrate: boolean;
  readonly seconds: number;
  readonly calibration?: string;
  readonly json: boolean;
}

const FILE = 'capacity.json';
/** Seconds of each kind of load, so that all kinds take about a minute. */
const SECONDS = 3;
/** PostgreSQL's default, and that of the embedded one. */
const MAX_CONNECTIONS = 100;
const SHIPPED: Readonly<Record<Store, Figures>> = {
  postgresql: figuresSchema.parse(shipped.postgresql),
  eventstoredb: figuresSchema.parse(shipped.eventstoredb),
};

function percentFrom(text: string): number {
  const value = /^\d{1,3}(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value <= 100) return value;
  throw new InvalidArgumentError('not a number from 0 to 100');
}

/** Adds `doorplate capacity`. */
export function addCapacityCommand(program: Command): void {
  program
    .command('capacity')
    .description(
      'what traffic needs: cores, memory, disk and processes at 1 to 1,000 times of it, and what ends first',
    )
    .requiredOption('--lookups-per-day <n>', 'lookups of a day', wholeFrom(0))
    .requiredOption('--visits-per-day <n>', 'visits that pixels send', wholeFrom(0))
    .requiredOption('--reveals-per-day <n>', 'reveals of visits', wholeFrom(0))
    .requiredOption('--endpoints <n>', 'webhook endpoints of all partners; 0: none', wholeFrom(0))
    .option(
      '--new-percent <n>',
      'share of lookups and reveals whose address has no result yet',
      percentFrom,
      5,
    )
    .option('--sends <n>', 'endpoints that each visit and reveal is sent to', wholeFrom(0), 1)
    .option(
      '--calibrate',
      'measure this machine first, for about a minute, on a PostgreSQL in a temporary folder',
      false,
    )
    .option('--seconds <n>', 'of each kind of load of --calibrate', wholeFrom(1), SECONDS)
    .option('--calibration <file>', `where --calibrate keeps its figures (${FILE} in DATA_DIR)`)
    .option('--json', 'print JSON', false)
    .action(async ({ json, ...options }: CapacityOptions) => {
      const config = loadConfig(process.env);
      const own = options.calibrate ? await calibrated(config, options) : readCalibration(config, options);
      const measured: Readonly<Record<Store, Measured>> =
        own === null
          ? {
              postgresql: { figures: SHIPPED.postgresql, source: 'shipped' },
              eventstoredb: { figures: SHIPPED.eventstoredb, source: 'shipped' },
            }
          : {
              postgresql: { figures: own, source: 'calibrated' },
              eventstoredb: {
                figures: scaledTo(own, SHIPPED.postgresql, SHIPPED.eventstoredb),
                source: 'scaled',
              },
            };
      const report = reportOf(trafficIn(options), settingsOf(config), measured);
      process.stdout.write(`${printable(json ? JSON.stringify(jsonOf(report)) : pageOf(report))}\n`);
    });
}

const trafficIn = ({
  lookupsPerDay,
  visitsPerDay,
  revealsPerDay,
  endpoints,
  newPercent,
  sends,
}: Omit<CapacityOptions, 'json'>): Traffic => ({
  lookups: lookupsPerDay,
  visits: visitsPerDay,
  reveals: revealsPerDay,
  endpoints,
  newShare: newPercent / 100,
  sends,
});

const settingsOf = (config: Config): Settings => ({
  API_REQUESTS_PER_SECOND: config.API_REQUESTS_PER_SECOND,
  ENRICHMENT_INTAKE_PER_MINUTE: config.ENRICHMENT_INTAKE_PER_MINUTE,
  CAPTURES_PER_SECOND: config.CAPTURES_PER_SECOND,
  REVEALS_PER_SECOND: config.REVEALS_PER_SECOND,
  WEBHOOK_STARTS_PER_SECOND: config.WEBHOOK_STARTS_PER_SECOND,
  max_connections: MAX_CONNECTIONS,
});

type Where = Pick<CapacityOptions, 'calibration' | 'seconds'>;

const fileOf = ({ DATA_DIR }: Config, { calibration }: Where): string =>
  resolve(calibration ?? join(DATA_DIR, FILE));

/** @returns null without one, unless it was named @throws Refused if it cannot be read */
function readCalibration(config: Config, options: Where): Figures | null {
  const file = fileOf(config, options);
  const again = 'measure again with --calibrate';
  let text: string;
  try {
    text = readText(file);
  } catch (error) {
    if (options.calibration === undefined && (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Refused(`--calibration: ${(error as Error).message}; ${again}`);
  }
  try {
    return figuresSchema.parse(JSON.parse(text));
  } catch {
    throw new Refused(`--calibration: ${file} holds no figures of this release; ${again}`);
  }
}

async function calibrated(config: Config, options: Where): Promise<Figures> {
  if (process.platform !== 'linux') throw new Refused('--calibrate needs Linux, whose /proc tells CPU times');
  const file = fileOf(config, options);
  if (options.calibration === undefined) openDataFolder(resolve(config.DATA_DIR));
  const stopped = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort());
  // Lazily, because it loads the whole service.
  const { calibrate } = await import('./capacity/calibrate.ts');
  let bar: ReturnType<typeof progressBar> | null = null;
  try {
    const figures = await calibrate({
      seconds: options.seconds,
      signal: stopped.signal,
      onStep: (done, of) => {
        bar ??= progressBar('measuring this machine, step', of);
        bar.update(done);
      },
    });
    writeFileSync(file, `${JSON.stringify(figures, null, 2)}\n`);
    return figures;
  } catch (error) {
    throw stopped.signal.aborted ? new Refused('stopped: nothing was kept') : error;
  } finally {
    (bar as ReturnType<typeof progressBar> | null)?.end();
  }
}
