import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { enrichmentStream } from '../../domain/lookup/events.ts';
import { tabStream } from '../../domain/sessions/tab.ts';
import { type EventStore, StreamExpired } from '../../event-store/port.ts';
import { forgetNames } from '../../processors/retire-streams.ts';
import { isExpired } from '../support/is-expired.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let store: EventStore;
let begun: number;
beforeAll(async () => {
  stack = await startTestStack();
  ({ store } = stack);
  begun = stack.clock.now();
});
afterAll(() => stack.close());
beforeEach(() => {
  stack.clock.set(begun);
});

const append = (stream: string, expected: number | 'no_stream' = 'no_stream', id: string = randomUUID()) => {
  const metadata = { $correlationId: 'c', $causationId: 'c', at: new Date(stack.clock.now()).toISOString() };
  return store.append(stream, expected, [{ id, type: 'test.Happened.v1', data: {}, metadata }]);
};
const deleted = async (stream: string): Promise<string> => {
  await append(stream);
  await store.expire(stream, 0);
  return stream;
};
const refuses = (stream: string) => expect(append(stream)).rejects.toBeInstanceOf(StreamExpired);
const forgetAfter = async (days: number) => {
  stack.clock.advance(days * DAY);
  await forgetNames({ store, clock: stack.clock });
};

describe('the name of a deleted stream', () => {
  it('is refused for 30 days, then the stream begins again at revision 0', async () => {
    const stream = await deleted(`payload-${randomUUID()}`);
    await forgetAfter(30);
    await refuses(stream);
    await forgetAfter(1);
    expect(await append(stream)).toMatchObject({ revision: 0 });
    const events = await Array.fromAsync(store.readStream(stream));
    expect(events.map(({ revision }) => revision)).toEqual([0]);
  });

  it('is kept for ever when the stream belongs to a reveal', async () => {
    const stream = await deleted(`reveal-${randomUUID()}`);
    await forgetAfter(4_000);
    await refuses(stream);
  });

  it.each([
    ['tab', tabStream],
    ['enrichment', enrichmentStream],
  ])('is kept while a later generation of the %s exists', async (_kind, streamOf) => {
    const id = randomUUID();
    const [first, second, third] = [streamOf(id, 0), streamOf(id, 1), streamOf(id, 2)];
    await deleted(first);
    await deleted(second);
    await append(third);
    await forgetAfter(31);
    for (const stream of [first, second]) await refuses(stream);
    await store.expire(third, 0);
    for (const _ of [third, second, first]) await forgetAfter(31);
    expect(await append(first)).toMatchObject({ revision: 0 });
    expect(await isExpired(store, second)).toBe(false);
  });
});
