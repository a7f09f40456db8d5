/**
 * `npm run bench [-- --quick] [-- row …]`: measures the speeds that docs/performance.md and docs/scaling.md state.
 * Prints one table and writes it to `results/`, except with `--quick` or a choice of rows. `--peers` measures the same
 * work through what people would build instead (`peers/`), and draws its table as docs/images/peers.svg too.
 */
import { parseArgs } from 'node:util';
import { capturePeers } from './peers/captures.ts';
import { deliveryPeers } from './peers/deliveries.ts';
import { eventStorePeers } from './peers/event-store.ts';
import { NoPeer } from './peers/install.ts';
import { lookupPeers } from './peers/lookups.ts';
import { drawPicture } from './peers/picture.ts';
import { captures } from './rows/captures.ts';
import { dashboardMillionRow } from './rows/dashboard-million.ts';
import { deliveries } from './rows/deliveries.ts';
import { deliveriesMillionRow } from './rows/deliveries-million.ts';
import { drain } from './rows/drain.ts';
import { feed } from './rows/feed.ts';
import { latency } from './rows/latency.ts';
import { memory } from './rows/memory.ts';
import { migrationsRow } from './rows/migrations.ts';
import { millionRow } from './rows/million.ts';
import { quotaHeaders } from './rows/quota-headers.ts';
import { rebuildRow } from './rows/rebuild.ts';
import { reveals } from './rows/reveals.ts';
import { savedLookups } from './rows/saved-lookups.ts';
import { sessionsMillionRow } from './rows/sessions-million.ts';
import { signals } from './rows/signals.ts';
import { submissions } from './rows/submissions.ts';
import { sweepMillionRow } from './rows/sweep-million.ts';
import { unitCosts } from './rows/unit-costs.ts';
import { yearsRow } from './rows/years.ts';
import { type Bench, FULL, type Line, QUICK, type Row } from './support/bench.ts';
import { describeMachine, type Machine } from './support/machine.ts';
import { type Product, startProduct } from './support/product.ts';
import { changesSinceLast, notes, table, writeResults } from './support/report.ts';
import { NoGenerator } from './support/wrk.ts';

/** In this order: the loads first, then the rows that depend on them, then those without the shared service. */
const ROWS: readonly Row[] = [
  ...[savedLookups, quotaHeaders, submissions, latency, memory, captures, feed, reveals, signals],
  ...[
    unitCosts,
    deliveries,
    drain,
    rebuildRow,
    millionRow,
    sessionsMillionRow,
    dashboardMillionRow,
    deliveriesMillionRow,
    sweepMillionRow,
  ],
  ...[migrationsRow, yearsRow],
];
/** Rows that start their own services. */
const STANDALONE: readonly Row[] = [
  unitCosts,
  deliveries,
  drain,
  rebuildRow,
  millionRow,
  sessionsMillionRow,
  dashboardMillionRow,
  deliveriesMillionRow,
  sweepMillionRow,
  migrationsRow,
  yearsRow,
];
/** With `--peers`, instead of all others. Each starts its own services. */
const PEER_ROWS: readonly Row[] = [eventStorePeers, deliveryPeers, capturePeers, lookupPeers];
/** They have three sides. */
const MOST_PEER_ROUNDS = 3;
const PARTNERS = 4;
/** A whole run took 50 minutes on a fast machine. */
const LIMIT_MS = 120 * 60_000;

const { values, positionals } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, peers: { type: 'boolean', default: false } },
  allowPositionals: true,
});

const effort = values.quick ? QUICK : FULL;
const rows = values.peers ? PEER_ROWS : ROWS;
const chosen = rows.filter((row) => positionals.length === 0 || positionals.includes(row.name));
const unknown = positionals.filter((name) => !rows.some((row) => row.name === name));

const say = (text: string): void => {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
};

const undoing: (() => Promise<void>)[] = [];
const undoAll = async (): Promise<void> => {
  for (let undo = undoing.pop(); undo; undo = undoing.pop()) {
    await undo().catch((error: unknown) => say(`could not clean up: ${error}`));
  }
};

const EVENTSTORE_URL = process.env.EVENTSTORE_URL || undefined;
const STORE = EVENTSTORE_URL === undefined ? 'postgresql' : 'postgresql-eventstoredb';
/** Of the files in `results/`. */
const RESULTS = values.peers ? 'peers' : STORE;

const createBench = (): Bench & { machine(): Promise<Machine> } => {
  let product: Promise<Product> | null = null;
  let used = 0;
  const bench: Bench = {
    effort: { ...effort, ...(values.peers && { rounds: Math.min(effort.rounds, MOST_PEER_ROUNDS) }) },
    eventStoreUrl: EVENTSTORE_URL,
    product: () => {
      product ??= startProduct(PARTNERS).then((started) => {
        undoing.push(started.end);
        return started;
      });
      return product;
    },
    endProduct: async () => {
      const running = product;
      product = null;
      await (await running)?.end();
    },
    maxima: new Map(),
    freshAddresses: (count) => {
      used += count;
      return used - count;
    },
    defer: (undo) => void undoing.push(undo),
    say,
  };
  return { ...bench, machine: async () => describeMachine(await bench.product(), STORE) };
};

const run = async (): Promise<void> => {
  const bench = createBench();
  const whole = !values.quick && chosen.length === rows.length;
  const machine = whole ? await bench.machine() : null;
  const lines: Line[] = [];
  for (const row of chosen) {
    if (values.peers || STANDALONE.includes(row)) await bench.endProduct();
    say(`row ${row.name}`);
    const measured = await runRow(row, bench);
    process.stderr.write(`${table(measured)}\n${notes(measured)}\n`);
    lines.push(...measured);
  }
  process.stdout.write(`${table(lines)}\n\n${notes(lines)}\n\n${changesSinceLast(lines, RESULTS)}\n`);
  if (machine === null) return;
  const files = writeResults(lines, machine, RESULTS);
  for (const file of values.peers ? [...files, drawPicture(files[1])] : files) say(`wrote ${file}`);
};

/** A row whose generator or peer is missing is skipped by name. */
const runRow = async (row: Row, bench: Bench): Promise<readonly Line[]> => {
  try {
    return await row.run(bench);
  } catch (error) {
    if (!(error instanceof NoGenerator || error instanceof NoPeer)) throw error;
    say(`row ${row.name} is SKIPPED: ${error.message}`);
    return [];
  }
};

/** Ends everything that it has started, however the run ends. */
const giveUp = (why: string): void => {
  say(why);
  void undoAll().finally(() => process.exit(1));
};

if (unknown.length > 0) {
  say(`no row is called ${unknown.join(', ')}; there are ${rows.map((row) => row.name).join(', ')}`);
  process.exit(2);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => giveUp(signal));
setTimeout(() => giveUp('the benchmark took too long'), LIMIT_MS).unref();
try {
  await run();
} finally {
  await undoAll();
}
process.exit(0);
