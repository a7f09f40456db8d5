import { DAY, utcDay } from '../../../domain/kernel/time.ts';
import { call } from '../../support/call.ts';
import type { Load } from '../load/load.ts';
import type { Counting, Partner } from '../partners.ts';
import type { StormProcess } from '../processes.ts';
import { settle } from './settle.ts';

const COUNTED_MS = 20_000;

/**
 * Usage counts every answer that a client received, and beyond that at most the requests whose connection or process
 * was cut, or that a 503 answered that may have been counted. An answer `usage_unavailable` is not counted.
 */
export const checkUsage = async (load: Load, partner: Partner, process: StormProcess): Promise<void> => {
  const { key, trackerId, partnerId, lookups, captures } = partner;
  const days = `from=${utcDay(Date.now() - DAY)}&to=${utcDay(Date.now() + DAY)}`;
  const read = async (path: string): Promise<Record<string, number> | null> => {
    const answer = await call(process.url, 'GET', `${path}?${days}`, { key }).catch(() => null);
    return answer?.status === 200 ? answer.body.totals : null;
  };
  const check = async (what: string, counting: Counting, counted: () => Promise<number | undefined>) => {
    const { received, uncertain } = counting;
    let last: number | undefined;
    const wrong = await settle(async () => {
      last = await counted();
      const right = last !== undefined && last >= received && last <= received + uncertain;
      return right ? [] : [last];
    }, COUNTED_MS);
    if (wrong.length === 0) return;
    load.violations.add(
      `usage counts every ${what} that was answered, and no other`,
      `partner ${partnerId}: received ${received}, uncertain ${uncertain}, usage ${last}`,
    );
  };
  await check('lookup', lookups, async () => (await read('/v1/usage'))?.requests);
  await check(
    'capture',
    captures,
    async () => (await read(`/v1/trackers/${trackerId}/usage`))?.capture_requests,
  );
};
