/**
 * `node bench/capacity.ts [SECONDS]`: measures what operations cost on this machine, for the figures that `doorplate capacity`
 * ships with (`cli/capacity/shipped.json`): those on PostgreSQL alone or, with EVENTSTORE_URL, EVENTSTORE_PID and EVENTSTORE_NAME of
 * a node with an empty log, those beside EventStoreDB. Run both on one machine on one day.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { calibrate, type MeasuredNode } from '../cli/capacity/calibrate.ts';

const FILE = fileURLToPath(new URL('../cli/capacity/shipped.json', import.meta.url));
const SECONDS = 20;
/** Significant, as no figure has more of them. */
const DIGITS = 4;

const seconds = Number(process.argv[2] ?? SECONDS);
const { EVENTSTORE_URL: url, EVENTSTORE_PID: pid, EVENTSTORE_NAME: name = 'EventStoreDB' } = process.env;
const stopped = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort());

const node: MeasuredNode | undefined = url && pid ? { url, name, pid: Number(pid) } : undefined;
const figures = await calibrate({
  seconds,
  ...(node && { node }),
  signal: stopped.signal,
  onStep: (done, of) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${done}/${of}\n`),
});
const rounded = (_name: string, value: unknown): unknown =>
  typeof value === 'number' ? Number(value.toPrecision(DIGITS)) : value;
const shipped = JSON.parse(readFileSync(FILE, 'utf8')) as object;
writeFileSync(
  FILE,
  `${JSON.stringify({ ...shipped, [node ? 'eventstoredb' : 'postgresql']: figures }, rounded, 2)}\n`,
);
process.exit(0);
