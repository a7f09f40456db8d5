/**
 * `node bench/capacity.ts [SECONDS]`: measures what operations cost on this machine, for the figures that `doorplate capacity`
 * ships with (`cli/capacity/shipped.json`). With EVENTSTORE_URL and EVENTSTORE_PID, of a node with nothing else on it, those of the
 * cluster too; without them, these stay as they are.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { calibrate, type MeasuredNode } from '../cli/capacity/calibrate.ts';
import type { Figures } from '../cli/capacity/figures.ts';

const FILE = fileURLToPath(new URL('../cli/capacity/shipped.json', import.meta.url));
const SECONDS = 20;

const seconds = Number(process.argv[2] ?? SECONDS);
const { EVENTSTORE_URL: url, EVENTSTORE_PID: pid, EVENTSTORE_NAME: name = 'EventStoreDB' } = process.env;
const stopped = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort());

const measure = (node?: MeasuredNode): Promise<Figures> =>
  calibrate({
    seconds,
    ...(node && { node }),
    signal: stopped.signal,
    onStep: (done, of) =>
      process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${node?.name ?? ''} ${done}/${of}\n`),
  });

const shipped = JSON.parse(readFileSync(FILE, 'utf8')) as object;
const postgresql = await measure();
const cluster = url && pid ? { eventstoredb: await measure({ url, name, pid: Number(pid) }) } : {};
writeFileSync(FILE, `${JSON.stringify({ ...shipped, postgresql, ...cluster }, null, 2)}\n`);
process.exit(0);
