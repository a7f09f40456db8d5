import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { type EnrichmentEvent, enrichmentStream } from '../../domain/lookup/events.ts';
import {
  type SnapshotEnrichmentsOptions,
  snapshotEnrichments,
} from '../../processors/lookup/snapshot-enrichments.ts';
import { lookups } from '../../projections/lookup/lookups.ts';
import { dyingStore, Killed } from '../support/other-stores.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { AT, completed, requested } from './lookup-events.ts';

/** The time at which all results of the day of `AT` are due. */
const DUE = Date.parse('2026-03-02T01:00:00.000Z');
const READER = 'reader';

let stack: TestStack;
let options: SnapshotEnrichmentsOptions;
const blocked: [string, number, number][] = [];
beforeAll(async () => {
  stack = await startTestStack();
  stack.project([lookups]);
  await stack.pool.query('insert into work.processor (name, position) values ($1, 9e18)', [READER]);
  const { store, pool, clock, log } = stack;
  options = {
    store,
    pool,
    clock,
    log,
    digest: (ip) => `digest of ${ip}`,
    consumers: { projections: [lookups.name], processors: [READER] },
    onBlocked: (...how) => void blocked.push(how),
    signal: new AbortController().signal,
    forMs: 60_000,
  };
});
afterAll(() => stack.close());

const streamOf = (ip: string) => enrichmentStream(options.digest(ip));
let made = 0;
/** Creates a new address and its work. */
const enriched = async (events: (ip: string) => readonly EnrichmentEvent[]): Promise<string> => {
  made += 1;
  const ip = `5.9.${Math.floor(made / 250)}.${made % 250}`;
  const metadata = { $correlationId: 'a', $causationId: 'a', at: new Date(AT).toISOString() };
  const all = events(ip).map((event) => ({ ...event, id: randomUUID(), metadata }));
  await stack.store.append(streamOf(ip), 'no_stream', all);
  return ip;
};
const round = (event: EnrichmentEvent, ip: string) =>
  ({ ...event, data: { ...event.data, ip } }) as EnrichmentEvent;
const ended = (ip: string) => [round(requested(), ip), completed({ ip })];

const run = async (over: Partial<SnapshotEnrichmentsOptions> = {}) => {
  await stack.caughtUp([lookups]);
  await snapshotEnrichments({ ...options, ...over });
  await stack.caughtUp([lookups]);
};
/** What the store's database holds of an address, hidden or not. */
const stored = async (ip: string) =>
  (
    await stack.rows('select type from eventlog.event where stream = $1 order by revision', [streamOf(ip)])
  ).map(({ type }) => String(type).split('.')[1]);

describe('a snapshot run of enrichments', () => {
  it('replaces the events of a past day an hour after its end, and not before', async () => {
    const ip = await enriched(ended);
    stack.clock.set(DUE - 1);
    await run();
    expect(await stored(ip)).toEqual(['EnrichmentRequested', 'EnrichmentCompleted']);
    stack.clock.set(DUE);
    await run();
    expect(await stored(ip)).toEqual(['EnrichmentSnapshotted']);
    const [row] = await stack.rows('select * from read.saved_lookup where ip = $1', [ip]);
    expect(row).toMatchObject({
      enriched_at: new Date('2026-03-01'),
      fresh_until: new Date('2026-03-31'),
      snapshotted: true,
    });
    await run();
    expect(await stored(ip)).toEqual(['EnrichmentSnapshotted']);
  });

  it.each(['before', 'after'] as const)(
    'is completed by the next run when it is killed %s any of its calls',
    async (when) => {
      stack.clock.set(DUE);
      for (let n = 0, died = true; died; n += 1) {
        const ips = [await enriched(ended), await enriched(ended)];
        const dying = dyingStore(stack.store, n, when);
        const error = await run({ store: dying.store }).then(
          () => null,
          (reason: unknown) => reason,
        );
        died = dying.hasDied();
        expect(error instanceof Killed, String(error)).toBe(died);
        await run();
        for (const ip of ips) expect(await stored(ip), `killed at ${n}`).toEqual(['EnrichmentSnapshotted']);
        expect(await stack.rows('select * from work.enrichment_truncation')).toEqual([]);
        if (!died) expect(n).toBeGreaterThan(7);
      }
    },
  );

  it('skips enrichments in progress and events that a consumer has not read yet', async () => {
    stack.clock.set(DUE);
    const open = await enriched((ip) => [...ended(ip), round(requested(2, 'refresh'), ip)]);
    await stack.pool.query('update work.processor set position = 0 where name = $1', [READER]);
    const unread = await enriched(ended);
    await run();
    expect(await stored(unread)).toHaveLength(2);
    await stack.pool.query('update work.processor set position = 9e18 where name = $1', [READER]);
    await run();
    expect(await stored(unread)).toEqual(['EnrichmentSnapshotted']);
    expect(await stored(open)).toHaveLength(3);
    await stack.store.append(streamOf(open), 2, [
      {
        ...completed({ ip: open }, { round: 2 }),
        id: randomUUID(),
        metadata: { $correlationId: 'a', $causationId: 'a', at: new Date(AT).toISOString() },
      },
    ]);
    await run();
    expect(await stored(open)).toEqual(['EnrichmentSnapshotted']);
  });

  it('keeps the exact times of reported results for two days', async () => {
    await stack.pool.query('update work.processor set position = 0 where name = $1', [READER]);
    stack.clock.set(AT + 2 * DAY + HOUR);
    const ip = await enriched(ended);
    await run();
    expect(blocked.at(-1)).toEqual(['saved-lookups', 1, 3_600]);
    await stack.pool.query('update work.processor set position = 9e18 where name = $1', [READER]);
    await run();
    // The read model shows the snapshot by the next run.
    await run();
    expect(blocked.at(-1)).toEqual(['saved-lookups', 0, 0]);
    expect(await stored(ip)).toEqual(['EnrichmentSnapshotted']);
  });
});
