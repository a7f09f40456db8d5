/** The one list of what can be wrong with an installation. Each channel tells its part of it. */
import type { Channel, Condition, Found, Notice, Reads } from './condition.ts';
import { INSTALLATION_CONDITIONS } from './installation-conditions.ts';
import { PARTNER_CONDITIONS } from './partner-conditions.ts';
import { WORK_CONDITIONS } from './work-conditions.ts';

export const CONDITIONS: readonly Condition[] = [
  ...INSTALLATION_CONDITIONS,
  ...WORK_CONDITIONS,
  ...PARTNER_CONDITIONS,
];

/** Returns the conditions that a channel tells. */
export const conditionsOf = (channel: Channel): readonly Condition[] =>
  CONDITIONS.filter(({ channels }) => channels.includes(channel));

/** Returns what a condition tells the operator now. */
export const findTold = async ({ find }: Condition, reads: Reads): Promise<readonly Found[]> =>
  (await find(reads)).filter(({ alert }) => alert?.isQuiet !== true);

/** Returns what a partner should look at, what is broken first. */
export async function findNotices(reads: Reads & { readonly partnerId: string }): Promise<readonly Notice[]> {
  const found = await Promise.all(conditionsOf('dashboard').map(({ find }) => find(reads)));
  return found
    .flat()
    .flatMap(({ notice }) => notice ?? [])
    .toSorted((one, other) => Number(one.tone === 'wait') - Number(other.tone === 'wait'));
}
