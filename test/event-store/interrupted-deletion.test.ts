import { afterAll, beforeAll, expect, it } from 'vitest';
import { forgetNames } from '../../processors/retire-streams.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

/** A stream of 10 events as a process leaves it that ended after it had deleted two of them. */
const interrupted = (stream: string, state: string) =>
  stack
    .rows(
      `with head as (insert into eventlog.stream (name, revision) values ('${stream}', 9)),
          event as (insert into eventlog.event (stream, revision, id, type, data, metadata)
                    select '${stream}', n, gen_random_uuid(), 'test.Happened.v1', '{}', '{}' from generate_series(2, 9) n)
     select`,
    )
    .then(() => stack.rows(`update eventlog.stream set ${state} where name = '${stream}'`));

const left = async (): Promise<Record<string, number[]>> => {
  const rows = await stack.rows(
    `select stream, array_agg(revision order by revision) as revisions from eventlog.event
     where stream like 'left-%' group by stream`,
  );
  return Object.fromEntries(rows.map(({ stream, revisions }) => [stream, revisions]));
};

it('the upkeep of stream names completes deletions that were interrupted, and deletes nothing else', async () => {
  await interrupted('left-expired', 'expired = true');
  // Of a stream whose row is behind its last event.
  await interrupted('left-behind', 'expired = true, revision = 4');
  await interrupted('left-truncated', 'truncated_before = 6');
  await interrupted('left-whole', 'truncated_before = 2');
  await forgetNames(stack);
  expect(await left()).toEqual({ 'left-truncated': [6, 7, 8, 9], 'left-whole': [2, 3, 4, 5, 6, 7, 8, 9] });
});
