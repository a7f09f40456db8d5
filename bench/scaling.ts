/**
 * `node bench/scaling.ts [--quick] [all] [1] [2] [4]`: measures one, two and four processes of each role on one
 * PostgreSQL, beside one process with both roles. Prints a table; a whole run, of all sizes and not quick, also puts
 * it into `docs/scaling.md` and `bench/results/`.
 * `node bench/scaling.ts [--quick] sharing`: one and two workers processes with a part of a core each; a run that is not
 * quick also puts it into `docs/scaling.md`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measureDeliveries, subscribe } from './rows/deliveries.ts';
import { savedAnswer, savedPlan } from './rows/saved-lookups.ts';
import { newPlan } from './rows/submissions.ts';
import { startWebhookSink } from './support/bare-deliveries.ts';
import { type Bench, FULL, QUICK } from './support/bench.ts';
import { type Cluster, type Size, startCluster } from './support/cluster.ts';
import { load } from './support/load.ts';
import type { LoadPlan } from './support/load-plan.ts';
import { describeMachine } from './support/machine.ts';
import { measureSharing } from './support/sharing.ts';
import { median } from './support/statistics.ts';
import { createTracker } from './support/tracking.ts';
import { deliveringEnv } from './support/webhooks.ts';

const SIZES: readonly Size[] = ['all', 1, 2, 4];
const PARTNERS = 4;
const CONNECTIONS = 64;
const ADDRESSES = 1_000_000;
const DOC = fileURLToPath(new URL('../docs/scaling.md', import.meta.url));
const RESULTS = fileURLToPath(new URL('results/', import.meta.url));
const MARKED = /(<!-- figures -->\n)[\s\S]*?(\n<!-- end of figures -->)/;
const SHARING = /(<!-- sharing -->\n)[\s\S]*?(\n<!-- end of sharing -->)/;

const { values, positionals } = parseArgs({
  options: { quick: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const chosen = SIZES.filter((size) => positionals.length === 0 || positionals.includes(String(size)));
const effort = values.quick ? { ...QUICK, rounds: 1 } : { ...FULL, rounds: 3 };

const say = (text: string): void => {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
};
const undoing: (() => Promise<void>)[] = [];
const undoAll = async (): Promise<void> => {
  for (let undo = undoing.pop(); undo; undo = undoing.pop()) {
    await undo().catch((error: unknown) => say(`could not clean up: ${error}`));
  }
};
let used = 0;
const bench: Pick<Bench, 'effort' | 'freshAddresses' | 'defer' | 'say'> = {
  effort,
  freshAddresses: (count) => {
    used += count;
    return used - count;
  },
  defer: (undo) => void undoing.push(undo),
  say,
};

/** The same load, with its connections divided over all api processes. */
const overAll = async ({ ports }: Cluster, planOf: (port: number) => LoadPlan): Promise<number> => {
  const loads = ports.map((port) => {
    const plan = planOf(port);
    return load({ ...plan, port, connections: Math.max(1, Math.floor(plan.connections / ports.length)) });
  });
  return (await Promise.all(loads)).reduce((sum, { perSecond }) => sum + perSecond, 0);
};

const rounds = async (measure: () => Promise<number>, then: () => Promise<void>): Promise<number> => {
  const seen: number[] = [];
  for (let round = 0; round < effort.rounds; round += 1) {
    seen.push(await measure());
    await then();
  }
  return median(seen);
};

/** Answers, or deliveries, a second. */
const measure = async (size: Size): Promise<{ figures: number[]; machine: string }> => {
  const sink = await startWebhookSink();
  undoing.push(sink.end);
  const env = { ...(await deliveringEnv(bench, sink)), WEBHOOK_STARTS_PER_SECOND: '100000' };
  const cluster = await startCluster(size, PARTNERS, env);
  undoing.push(cluster.end);
  await savedAnswer(cluster);
  const tracker = await createTracker(cluster);
  const quiet = () => cluster.settled();
  const saved = await rounds(() => overAll(cluster, () => savedPlan(cluster, effort)), quiet);
  const fresh = await rounds(() => overAll(cluster, () => newPlan(bench, cluster)), quiet);
  const captured = await rounds(
    () =>
      overAll(cluster, (port) => ({
        ...effort,
        port,
        requests: { of: 'captures', tracker, first: bench.freshAddresses(ADDRESSES) },
        connections: CONNECTIONS,
        expect: 204,
      })),
    quiet,
  );
  const sites = await subscribe(cluster, sink);
  const deliver = () => cluster.beside((runtime) => measureDeliveries(bench, runtime, cluster, sites, sink));
  await deliver();
  const delivered = await rounds(async () => (await deliver()).perSecond, quiet);
  const { date, cores, cpu, postgresql } = await describeMachine(cluster, 'postgresql');
  await undoAll();
  const machine = `On ${date.slice(0, 10)}, ${cores} cores (${cpu}) that carried all processes, PostgreSQL ${postgresql} and the load together.`;
  return { figures: [saved, fresh, captured, delivered], machine };
};

/** Puts text between the two marks of the page. */
const intoPage = (marked: RegExp, text: string): void => {
  const page = readFileSync(DOC, 'utf8');
  if (!marked.test(page)) throw new Error(`docs/scaling.md has no text that matches ${marked}`);
  writeFileSync(DOC, page.replace(marked, `$1${text}$2`));
};

const runSharing = async (): Promise<void> => {
  const text = await measureSharing(bench);
  process.stdout.write(`${text}\n`);
  if (!values.quick) intoPage(SHARING, text);
};

const nameOf = (size: Size): string => (size === 'all' ? 'one, both roles' : `${size} api, ${size} workers`);

const run = async (): Promise<void> => {
  const lines = [
    '| processes | saved lookups/s | new submissions/s | captures/s | deliveries/s |',
    '| --- | --- | --- | --- | --- |',
  ];
  let on = '';
  for (const size of chosen) {
    say(`${nameOf(size)} …`);
    const { figures, machine } = await measure(size);
    on = machine;
    const cells = figures.map((figure) => Math.round(figure).toLocaleString('en'));
    lines.push(`| ${[nameOf(size), ...cells].join(' | ')} |`);
    say(lines.at(-1) ?? '');
  }
  const text = `${on}\n\n${lines.join('\n')}`;
  process.stdout.write(`${text}\n`);
  if (values.quick || chosen.length < SIZES.length) return;
  intoPage(MARKED, text);
  const file = `${RESULTS}${new Date().toISOString().slice(0, 10)}-scaling.md`;
  writeFileSync(file, `# Scaling\n\n${text}\n`);
  say(`wrote ${DOC} and ${file}`);
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => void undoAll().finally(() => process.exit(1)));
}
try {
  await (positionals[0] === 'sharing' ? runSharing() : run());
} finally {
  await undoAll();
}
process.exit(0);
