import type { Load } from '../load/load.ts';
import type { Partner } from '../partners.ts';
import type { Stack } from '../stack.ts';
import { checkDeliveries } from './deliveries.ts';
import { checkReveals, repeatReveals } from './reveals.ts';
import { checkRunning } from './running.ts';
import { checkSessions } from './sessions.ts';
import { checkSubmissions } from './submissions.ts';
import { checkUsage } from './usage.ts';

/** Checks every invariant from outside after load and faults have ended. @returns how much of what was checked */
export const checkInvariants = async (stack: Stack, load: Load): Promise<Record<string, number>> => {
  const { violations, partners } = load;
  const [api] = stack.api;
  if (api === undefined) throw new Error('no api process');
  await checkRunning(stack.processes, violations);
  for (const partner of partners) {
    try {
      await checkSessions(load, partner);
      await repeatReveals(load, partner);
      // Before a receipt is read, which would complete a waiting reveal.
      await checkDeliveries(load, partner);
      await checkReveals(load, partner, api);
      await checkSubmissions(load, partner);
      await checkUsage(load, partner, api);
    } catch (error) {
      violations.add('every request is answered when all faults are over', `${partner.partnerId}: ${error}`);
    }
  }
  await checkRunning(stack.processes, violations);
  const sum = (count: (partner: Partner) => number): number =>
    partners.reduce((total, partner) => total + count(partner), 0);
  return {
    submissions: sum(({ submitted }) => submitted.size),
    sessions: sum(({ feed }) => feed.length),
    reveals: sum(({ reveals }) => reveals.size),
    'delivered events': sum(({ receivedEvents }) => receivedEvents.size),
    'counted lookups': sum(({ lookups }) => lookups.answered),
    'lookups that said they were not counted': sum(({ lookups }) => lookups.uncounted),
    'counted captures': sum(({ captures }) => captures.answered),
  };
};
