/** The one list of what can be wrong with an installation. Each channel reports a part of it. */
import type { Channel, Condition, ConditionContext, Found, Notice } from './condition.ts';
import { INSTALLATION_CONDITIONS } from './installation-conditions.ts';
import { PARTNER_CONDITIONS } from './partner-conditions.ts';
import { WORK_CONDITIONS } from './work-conditions.ts';

export const CONDITIONS: readonly Condition[] = [
  ...INSTALLATION_CONDITIONS,
  ...WORK_CONDITIONS,
  ...PARTNER_CONDITIONS,
];

/** Returns the conditions that a channel reports. */
export const conditionsOf = (channel: Channel): readonly Condition[] =>
  CONDITIONS.filter(({ channels }) => channels.includes(channel));

/** Finds the subjects of a condition that are reported to the operator, in the tables. */
export const findReported = async (
  { findInTables }: Condition,
  context: ConditionContext,
): Promise<readonly Found[]> => (await findInTables(context)).filter(({ alert }) => alert?.isQuiet !== true);

/** Returns what a partner should look at, what is broken first. */
export async function findNotices(
  context: ConditionContext & { readonly partnerId: string },
): Promise<readonly Notice[]> {
  const found = await Promise.all(conditionsOf('dashboard').map(({ findInTables }) => findInTables(context)));
  return found
    .flat()
    .flatMap(({ notice }) => notice ?? [])
    .toSorted((one, other) => Number(one.tone === 'wait') - Number(other.tone === 'wait'));
}
