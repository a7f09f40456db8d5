import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WEBHOOKS_PREFIX } from '../../domain/webhooks/events.ts';
import type { Position, RecordedEvent } from '../../event-store/port.ts';
import {
  type CompleteRevealsDeps,
  completeReveals,
  completeRevealsOf,
  completeWaiting,
  createCompletionRuns,
} from '../../processors/reveals/complete-reveals.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());
afterEach(() => stack.pool.query('truncate work.awaited_result, read.reveal, read.webhook_subscription'));

const TRACKER = randomUUID();

/** Makes pending reveals of a partner that wait for one address. */
const pending = async (
  partner: string,
  count: number,
  { tracker = TRACKER, ready = true, digest = 'a-digest' } = {},
): Promise<void> => {
  await stack.pool.query(
    `with r as (
       insert into read.reveal (reveal_id, session_id, tracker_id, partner_id, created_at, expires_at, last_revision, last_position)
       select gen_random_uuid(), gen_random_uuid(), $3, $1, $4, $5, 0, 0 from generate_series(1, $2) returning *)
     insert into work.awaited_result (reveal_id, session_id, partner_id, address_digest, asked, expires_at, ready)
     select reveal_id, session_id, partner_id, $6, true, expires_at, $7 from r`,
    [partner, count, tracker, now(), new Date(stack.clock.now() + 60_000), digest, ready],
  );
};
const now = () => new Date(stack.clock.now());

const subscribe = (partner: string, tracker: string | null = null) =>
  stack.pool.query(
    `insert into read.webhook_subscription (webhook_id, partner_id, tracker_id, events, from_position)
     values ($1, $2, $3, '{reveal.completed}', 0)`,
    [randomUUID(), partner, tracker],
  );

/** Completes every reveal, and notes whose it was. */
const completing = () => {
  const completed: string[] = [];
  const deps: CompleteRevealsDeps = {
    pool: stack.pool,
    clock: stack.clock,
    applied: async () => true,
    complete: async (revealId) => {
      const { rows } = await stack.pool.query(
        'update read.reveal set completed_at = $2 where reveal_id = $1 returning partner_id',
        [revealId, now()],
      );
      completed.push(rows[0].partner_id);
      return true;
    },
  };
  return { deps, completed };
};

describe('when the result of an address arrives', () => {
  it('the first of very many reveals that wait for it complete at once, the others in later runs', async () => {
    const anna = randomUUID();
    await subscribe(anna);
    await pending(anna, 500, { ready: false });
    const { deps, completed } = completing();
    await completeRevealsOf(deps, 'a-digest');
    expect(completed).toHaveLength(100);
    await createCompletionRuns(deps)();
    expect(completed).toHaveLength(500);
  });
});

/** A change of the partner's endpoint as the log holds it. */
const endpointUpdated = (partner_id: string): RecordedEvent => ({
  id: randomUUID(),
  type: 'webhooks.EndpointUpdated.v1',
  data: {
    webhook_id: randomUUID(),
    partner_id,
    name: 'an endpoint',
    events: ['reveal.completed'],
    enabled: true,
    updated_at: now().toISOString(),
  },
  metadata: { $correlationId: 'c', $causationId: 'c', at: now().toISOString() },
  stream: `${WEBHOOKS_PREFIX}${partner_id}`,
  revision: 0,
  position: 1n as Position,
});

it('a change of endpoints completes a hundred reveals whose results have arrived, and runs the others', async () => {
  const anna = randomUUID();
  await subscribe(anna);
  await pending(anna, 400);
  const { deps, completed } = completing();
  await completeReveals(deps).handle(endpointUpdated(anna));
  expect(completed).toHaveLength(100);
  await createCompletionRuns(deps)();
  expect(completed).toHaveLength(400);
});

describe('reveals of one address that are recorded after its result', () => {
  const waiting = async () => {
    const { rows } = await stack.pool.query<{ reveal_id: string; partner_id: string }>(
      'select reveal_id, partner_id from work.awaited_result where not ready',
    );
    return rows;
  };

  it('complete one by one, each once, however many there are', async () => {
    const anna = randomUUID();
    await subscribe(anna);
    await pending(anna, 40, { ready: false });
    const { deps, completed } = completing();
    await Promise.all((await waiting()).map(({ reveal_id }) => completeWaiting(deps, reveal_id)));
    expect(completed).toHaveLength(40);
    expect(await waiting()).toHaveLength(40);
  });
});

describe('a run over the reveals whose results have arrived', () => {
  it('continues with other partners when the queue of one is full', async () => {
    const [anna, ben] = [randomUUID(), randomUUID()];
    for (const partner of [anna, ben]) await subscribe(partner);
    await pending(anna, 3);
    await pending(ben, 3);
    const { deps, completed } = completing();
    let refused = 0;
    const complete: CompleteRevealsDeps['complete'] = async (revealId, context) => {
      const { rows } = await stack.pool.query('select partner_id from read.reveal where reveal_id = $1', [
        revealId,
      ]);
      if (rows[0].partner_id === ben) return deps.complete(revealId, context);
      refused += 1;
      return false;
    };
    await createCompletionRuns({ ...deps, complete })();
    expect(completed).toEqual([ben, ben, ben]);
    expect(refused).toBe(1);
  });
});
