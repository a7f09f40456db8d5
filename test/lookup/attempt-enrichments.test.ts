import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createIntakeBatcher,
  type LookupStreams,
  loadEnrichment,
} from '../../commands/lookup/enrichment-streams.ts';
import { recordAttempt } from '../../commands/lookup/record-attempt.ts';
import { type SubmitLookupDeps, submitLookup } from '../../commands/lookup/submit-lookup.ts';
import { intakeStream } from '../../domain/lookup/intake.ts';
import { type EventStore, OutcomeUnknown } from '../../event-store/port.ts';
import { startEnrichmentAttempts } from '../../processors/lookup/attempt-enrichments.ts';
import type { Provider } from '../../processors/lookup/providers/provider.ts';
import { resubmitOrphaned, settleEndedWork } from '../../processors/lookup/settle-reservations.ts';
import { lookups } from '../../projections/lookup/lookups.ts';
import { startProcessor } from '../support/leading.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';
import { result } from './lookup-events.ts';

let stack: TestStack;
let streams: LookupStreams;
beforeAll(async () => {
  stack = await startTestStack();
  streams = streamsOver(stack.store);
  stack.project([lookups]);
});
afterAll(() => stack.close());

const streamsOver = (store: EventStore): LookupStreams => ({
  store,
  digest: (ip) => `digest-of-${ip}`,
  intake: createIntakeBatcher(store),
});
const parts = (over: LookupStreams = streams): SubmitLookupDeps => ({
  ...over,
  capacity: { admit: async () => ({ ok: true, finished: () => undefined }) },
  configured: () => [],
  settlementsCaughtUp: async () => undefined,
});
const submit = (ip: string, partnerId: string, over?: LookupStreams) =>
  submitLookup(
    parts(over),
    { ip, partnerId, keyId: 'key_a', dailyAllowance: null, pendingLimit: 100 },
    stack.context(),
  );
const enrichmentOf = async (ip: string) => (await loadEnrichment(streams, ip)).state;

const attempts = (lookup: Provider['lookup'], atOnce = 4, store = stack.store) =>
  startEnrichmentAttempts(
    {
      ...streamsOver(store),
      pool: stack.pool,
      clock: stack.clock,
      log: stack.log,
      chain: [{ name: 'test', lookup }],
      attemptMs: 5_000,
      retryBaseMs: 15_000,
      random: () => 0.5,
    },
    atOnce,
  );
const company = { match_type: 'company', network: null, company: null, fresh_for_days: null } as const;

describe('the attempts at an enrichment', () => {
  it('complete it and settle every partner that waits for it', async () => {
    const [anna, bert] = [randomUUID(), randomUUID()];
    await submit('8.8.1.1', anna);
    await submit('8.8.1.1', bert);
    await stack.caughtUp([lookups]);
    const worker = attempts(async () => company);
    const settling = startProcessor(settleEndedWork(streams, stack.clock), stack);
    await until('it is saved', async () => (await enrichmentOf('8.8.1.1')).saved);
    for (const partner of [anna, bert]) {
      await until('the reservation is settled', async () => {
        const events = await Array.fromAsync(stack.store.readStream(intakeStream(partner)));
        return events.some((event) => event.type === 'lookup.ReservationSettled.v1');
      });
    }
    await worker.stop();
    await settling.stop();
  });

  it('happen once with several polling workers', async () => {
    const partner = randomUUID();
    const asked: string[] = [];
    const lookup = async (ip: string) => {
      asked.push(ip);
      return company;
    };
    const addresses = Array.from({ length: 30 }, (_, n) => `8.8.2.${n}`);
    await Promise.all(addresses.map((ip) => submit(ip, partner)));
    await stack.caughtUp([lookups]);
    const workers = [attempts(lookup), attempts(lookup), attempts(lookup)];
    for (const ip of addresses) await until(`${ip} is saved`, async () => (await enrichmentOf(ip)).saved);
    expect(asked.toSorted()).toEqual(addresses.toSorted());
    for (const worker of workers) await worker.stop();
  });

  it('are repeated after their delay when they fail, not before', async () => {
    let asked = 0;
    const worker = attempts(async (ip) => {
      if (ip !== '8.8.3.1') return null;
      asked += 1;
      if (asked === 1) throw new Error('timed out');
      return company;
    });
    await submit('8.8.3.1', randomUUID());
    await stack.caughtUp([lookups]);
    worker.nudge();
    const { open } = await until('the failure is stored', async () => {
      const state = await enrichmentOf('8.8.3.1');
      return state.open?.attempts === 1 ? state : null;
    });
    expect(open?.next_attempt_at).toBe(new Date(stack.clock.now() + 15_000).toISOString());
    worker.nudge();
    await stack.caughtUp([lookups]);
    expect(asked).toBe(1);
    stack.clock.advance(15_000);
    worker.nudge();
    await until('it is saved', async () => (await enrichmentOf('8.8.3.1')).saved);
    expect(asked).toBe(2);
    await worker.stop();
  });

  it('are repeated after the lease when their worker died, and the late worker changes nothing', async () => {
    await submit('8.8.4.1', randomUUID());
    await stack.caughtUp([lookups]);
    let release = (): void => undefined;
    const hanging = new Promise<void>((resolve) => {
      release = resolve;
    });
    let began = false;
    const dead = attempts(async () => {
      // A long attempt leaves its slot, so this worker may repeat it as well.
      if (began) return company;
      began = true;
      await hanging;
      return { ...company, match_type: 'isp' as const };
    }, 1);
    await until('the first worker began', () => began);
    const alive = attempts(async () => company);
    stack.clock.advance(60_000);
    const saved = await until(
      'another attempt completed it',
      async () => (await enrichmentOf('8.8.4.1')).saved,
    );
    expect(saved.match_type).toBe('company');
    release();
    await dead.stop();
    await alive.stop();
    expect((await enrichmentOf('8.8.4.1')).saved?.match_type).toBe('company');
  });
});

describe('a reservation whose submission failed', () => {
  const brokenAfterReservation = (): LookupStreams =>
    streamsOver({
      ...stack.store,
      append: (stream, expected, events) =>
        stream.startsWith('enrichment-')
          ? Promise.reject(new OutcomeUnknown('no answer'))
          : stack.store.append(stream, expected, events),
    });

  const sweep = () =>
    resubmitOrphaned({
      ...streams,
      configured: () => [],
      pool: stack.pool,
      clock: stack.clock,
      log: stack.log,
    });

  it('is reported as unconfirmed, and a repeat completes it without a second reservation', async () => {
    const partner = randomUUID();
    expect(await submit('8.8.5.1', partner, brokenAfterReservation())).toMatchObject({
      is: 'refused',
      refusal: 'submission_unconfirmed',
    });
    expect(await submit('8.8.5.1', partner)).toMatchObject({ is: 'pending', enqueued: false });
    const made = await Array.fromAsync(stack.store.readStream(intakeStream(partner)));
    expect(made).toHaveLength(1);
  });

  it('is submitted by the sweep after the time limit of its POST', async () => {
    const partner = randomUUID();
    await submit('8.8.5.2', partner, brokenAfterReservation());
    await stack.caughtUp([lookups]);
    expect(await sweep()).toBe(0);
    stack.clock.advance(5_000);
    expect(await sweep()).toBe(1);
    expect((await enrichmentOf('8.8.5.2')).open?.reservations.first()?.partner_id).toBe(partner);
    await stack.caughtUp([lookups]);
    expect(await sweep()).toBe(0);
  });

  it('is settled at once when its address has been saved meanwhile', async () => {
    const [anna, bert] = [randomUUID(), randomUUID()];
    await submit('8.8.5.3', anna, brokenAfterReservation());
    await submit('8.8.5.3', bert);
    await recordAttempt(
      streams,
      {
        ip: '8.8.5.3',
        roundNumber: 1,
        attempt: 1,
        outcome: {
          result: result({ ip: '8.8.5.3', fresh_until: new Date(stack.clock.now() + 1e9).toISOString() }),
        },
        jitter: 0,
        retryBaseMs: 1,
      },
      stack.context(),
    );
    await stack.caughtUp([lookups]);
    stack.clock.advance(5_000);
    await sweep();
    const types = (await Array.fromAsync(stack.store.readStream(intakeStream(anna)))).map(
      (event) => event.type,
    );
    expect(types).toEqual(['lookup.ReservationMade.v1', 'lookup.ReservationSettled.v1']);
  });
});
