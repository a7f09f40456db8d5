import { expect, it } from 'vitest';
import { oneRetryAtATime } from '../../dashboard/one-retry-at-a-time.ts';
import type { RetriedAll } from '../../dashboard/pages/deliveries.ts';
import type { Visit } from '../../dashboard/visit.ts';

const visitOf = (partner_id: string) => ({ user: { partner_id } }) as Visit;
const DAY = '2026-11-22';
const DONE: RetriedAll = { retried: 1, all: true, refused: null };

it('refuses a second retry of all failed deliveries while one of the partner runs', async () => {
  const ends: PromiseWithResolvers<RetriedAll>[] = [];
  const { retryFailedSince } = oneRetryAtATime({
    retryFailedSince: () => {
      const end = Promise.withResolvers<RetriedAll>();
      ends.push(end);
      return end.promise;
    },
  });
  const first = retryFailedSince(visitOf('one'), 'endpoint', DAY);
  const second = await retryFailedSince(visitOf('one'), 'another endpoint', DAY);
  expect(second.refused).toMatchObject({ status: 429, retryAfter: 3 });
  const ofAnother = retryFailedSince(visitOf('another'), 'endpoint', DAY);
  expect(ends).toHaveLength(2);

  ends[0]?.resolve(DONE);
  expect(await first).toEqual(DONE);
  const again = retryFailedSince(visitOf('one'), 'endpoint', DAY);
  expect(ends).toHaveLength(3);
  ends[1]?.resolve(DONE);
  ends[2]?.reject(new Error('broken'));
  await ofAnother;
  await expect(again).rejects.toThrow('broken');
  void retryFailedSince(visitOf('one'), 'endpoint', DAY);
  expect(ends).toHaveLength(4);
});
