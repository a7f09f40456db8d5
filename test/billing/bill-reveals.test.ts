import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { billReveals } from '../../commands/billing/bill-reveals.ts';
import { billingStream } from '../../domain/billing/events.ts';
import { type EventStore, OutcomeUnknown, StoreBusy } from '../../event-store/port.ts';
import { aCompletion } from '../support/completions.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let partner: string;
beforeAll(async () => {
  stack = await startTestStack();
});
beforeEach(() => {
  partner = randomUUID();
});
afterAll(() => stack.close());

const completion = (position: bigint) => aCompletion(stack, partner, position);

const entries = async () => {
  const found: { revision: number; position: string; cause: string }[] = [];
  for await (const { revision, data, metadata } of stack.store.readStream(billingStream(partner))) {
    const { position } = data as { position: string };
    found.push({ revision, position, cause: metadata.$causationId });
  }
  return found;
};
const positions = async () => (await entries()).map(({ position }) => position);

/** Appends, and then reports an unknown outcome the given number of times. */
const forgetful = (times: number): EventStore => {
  let left = times;
  return {
    ...stack.store,
    append: async (...append) => {
      const appended = await stack.store.append(...append);
      left -= 1;
      if (left >= 0) throw new OutcomeUnknown('no answer in time');
      return appended;
    },
  };
};

describe('billing completed reveals', () => {
  it('appends one entry for each completion in one append, traced to its own completion', async () => {
    await billReveals(stack.store, partner, [completion(5n), completion(8n)]);
    expect(await entries()).toEqual([
      { revision: 0, position: '5', cause: 'completion 5' },
      { revision: 1, position: '8', cause: 'completion 8' },
    ]);
  });

  it('appends no entry again, nor one for an older completion', async () => {
    const [five, eight, nine] = [completion(5n), completion(8n), completion(9n)];
    await billReveals(stack.store, partner, [five, eight]);
    await billReveals(stack.store, partner, [five, eight]);
    await billReveals(stack.store, partner, [completion(7n)]);
    await billReveals(stack.store, partner, [eight, nine]);
    expect(await positions()).toEqual(['5', '8', '9']);
  });

  it.each([1, 3])('appends one entry when the response of the append is lost %i times', async (times) => {
    const five = completion(5n);
    const killed = await billReveals(forgetful(times), partner, [five]).catch((error: unknown) => error);
    // The resends of one append learn its outcome; after them the processor retries.
    if (times === 3) expect(killed).toBeInstanceOf(OutcomeUnknown);
    else expect(killed).toBeUndefined();
    await billReveals(stack.store, partner, [five, completion(6n)]);
    expect(await positions()).toEqual(['5', '6']);
  });

  it('stops when the last entry has been removed', async () => {
    await billReveals(stack.store, partner, [completion(5n), completion(8n)]);
    await stack.pool.query('delete from eventlog.event where stream = $1 and revision = 1', [
      billingStream(partner),
    ]);
    await expect(billReveals(stack.store, partner, [completion(9n)])).rejects.toThrow(StoreBusy);
    expect(await positions()).toEqual(['5']);
  });
});
