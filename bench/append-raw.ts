/**
 * Appends single events to its own event store as fast as its callers can, each to a separate stream at an exact
 * revision: the limit of the store itself. Argument: `RawAppends`. Prints `{pid}` of its PostgreSQL when it is ready,
 * then takes lines `{seconds}` and answers each with `{appends, seconds}`.
 */
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { v7 as uuid } from 'uuid';
import { openRuntime } from '../bin/runtime.ts';
import { postmasterOf } from '../cli/installation/data-folder.ts';
import type { EventStore, NewEvent } from '../event-store/port.ts';
import { loadConfig } from '../platform/config/config.ts';
import { createLogger } from '../platform/telemetry/log.ts';
import { addressOf } from './support/addresses.ts';

export interface RawAppends {
  readonly env: Readonly<Record<string, string>>;
  readonly callers: number;
  /** Bytes of random text in each event, beside the rest. */
  readonly bytes: number;
}

const { env, callers, bytes } = JSON.parse(process.argv[2] ?? '') as RawAppends;
const runtime = await openRuntime(
  loadConfig(env),
  createLogger({ level: 'warn', destination: 'stderr' }),
  'own',
);

/** As large as the event of a submission, plus `bytes`. */
const newEvent = (number: number): NewEvent => ({
  id: uuid(),
  type: 'bench.Appended.v1',
  data: {
    ip: addressOf(number),
    round: 1,
    kind: 'first',
    requested_at: new Date().toISOString(),
    reservation: { reservation_id: uuid(), partner_id: uuid(), key_id: uuid() },
    ...(bytes === 0 ? {} : { text: randomBytes(Math.ceil((bytes * 3) / 4)).toString('base64') }),
  },
  metadata: { $correlationId: uuid(), $causationId: uuid(), at: new Date().toISOString() },
});

const run = `bench-${uuid()}`;
const revisions = Array.from({ length: callers }, () => -1);

const callFor = async (store: EventStore, caller: number, until: number): Promise<number> => {
  let appends = 0;
  while (performance.now() < until) {
    const revision = revisions[caller] ?? -1;
    const expected = revision < 0 ? 'no_stream' : revision;
    revisions[caller] = (await store.append(`${run}-${caller}`, expected, [newEvent(appends)])).revision;
    appends += 1;
  }
  return appends;
};

process.stdout.write(`${JSON.stringify({ pid: postmasterOf(runtime.dataDir) })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const { seconds } = JSON.parse(line) as { seconds: number };
  const begin = performance.now();
  const until = begin + seconds * 1_000;
  const each = await Promise.all(revisions.map((_, caller) => callFor(runtime.store, caller, until)));
  const appends = each.reduce((sum, count) => sum + count, 0);
  process.stdout.write(`${JSON.stringify({ appends, seconds: (performance.now() - begin) / 1_000 })}\n`);
}
await runtime.close();
