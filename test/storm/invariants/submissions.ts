import type { Load } from '../load/load.ts';
import { lookUp } from '../load/lookups.ts';
import type { Partner } from '../partners.ts';
import { forEachConcurrently, settle } from './settle.ts';

const COMPLETED_MS = 90_000;

/** Every acknowledged submission is known, and completes. */
export const checkSubmissions = async (load: Load, partner: Partner): Promise<void> => {
  let incomplete: readonly string[] = [...partner.submitted];
  incomplete = await settle(async () => {
    const left: string[] = [];
    await forEachConcurrently(incomplete, async (ip) => {
      if ((await lookUp(load, partner, ip)) !== 200) left.push(ip);
    });
    incomplete = left;
    return left;
  }, COMPLETED_MS);
  for (const ip of incomplete) {
    load.violations.add('an acknowledged submission completes', `partner ${partner.partnerId}, ${ip}`);
  }
};
