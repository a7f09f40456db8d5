/**
 * `npm run storm -- [--minutes N] [--seed N] [--eventstore URL [--cluster-command CMD]] [--json FILE] [--logs FOLDER]
 * [--only TEXT] [--upgrades [--month] | --short]` runs a storm (docs/reliability.md), prints what came out, and exits with 1 if a promise was
 * broken. `--short`, for CI: half a minute of faults, and one of upgrades beside it.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { printable, type StormResult } from './report.ts';
import { runStorm } from './storm.ts';
import { NoEarlierRelease } from './upgrades/releases.ts';
import { runShortUpgradeStorm, runUpgradeStorm } from './upgrades/upgrade-storm.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    eventstore: { type: 'string' },
    'cluster-command': { type: 'string' },
    json: { type: 'string' },
    logs: { type: 'string' },
    only: { type: 'string' },
    upgrades: { type: 'boolean', default: false },
    month: { type: 'boolean', default: false },
    short: { type: 'boolean', default: false },
  },
});
const number = (name: string, text: string): number => {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  process.stderr.write(`--${name} is not a number above 0: ${text}\n`);
  return process.exit(2);
};
if (values['cluster-command'] !== undefined && values.eventstore === undefined) {
  process.stderr.write('--cluster-command needs --eventstore\n');
  process.exit(2);
}

if (values.month && !values.upgrades) {
  process.stderr.write('--month needs --upgrades\n');
  process.exit(2);
}

const options = {
  minutes: values.short ? 0.5 : number('minutes', values.minutes),
  seed: number('seed', values.seed ?? String(1 + (Date.now() % 2 ** 31))),
  eventStoreUrl: values.eventstore,
  clusterCommand: values['cluster-command'],
  logFolder: values.logs,
  only: values.only,
  month: values.month,
  say: (line: string) => void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`),
};
const shortUpgrades = (): Promise<StormResult[]> =>
  runShortUpgradeStorm({ ...options, minutes: 0 }).then(
    (result) => [result],
    (error: Error) => {
      if (!(error instanceof NoEarlierRelease)) throw error;
      options.say(`the storm of upgrades is skipped: ${error.message}`);
      return [];
    },
  );
// The short ones run side by side, because both mostly wait.
const storms = values.upgrades
  ? [runUpgradeStorm(options)]
  : [runStorm(options), ...(values.short ? [shortUpgrades()] : [])];
const results = (await Promise.all(storms)).flat();
for (const result of results) process.stdout.write(`${printable(result)}\n`);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results.at(-1), null, 2)}\n`);
// A storm in which nothing happened proves nothing.
const isIdle = results.some(({ totals }) =>
  ['sessions', 'reveals', 'delivered events', ...(values.month ? ['events of the month'] : [])].some(
    (what) => !totals[what],
  ),
);
if (isIdle)
  process.stderr.write('no session, no reveal or no delivered event was made: the storm proves nothing\n');
// Test helper processes would keep this one alive.
process.exit(!isIdle && results.every(({ violationCount }) => violationCount === 0) ? 0 : 1);
