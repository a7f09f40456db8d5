import { domainStream, nextCheck } from '../../domain/domains/domain.ts';
import type { CommandContext } from '../handle.ts';
import type { NamesBatcher } from './aggregates.ts';

/** What a look at a name has found. */
export interface Look {
  readonly domain_id: string;
  readonly hostname: string;
  /** When it began, in milliseconds. */
  readonly at: number;
  /** Why the name does not point here; null: it does. */
  readonly error: string | null;
  /** Whether the name's TXT record holds the token of the claim's partner. */
  readonly proven: boolean;
}

/** Writes down what is new in it. @returns when to look again, in milliseconds; null: never */
export const recordCheck = async (
  names: NamesBatcher,
  check: Look,
  context: CommandContext,
): Promise<number | null> => {
  const stream = domainStream(check.hostname);
  const checked = await names.submit(stream, { type: 'Look', ...check }, context, ({ claims }) =>
    claims.get(check.domain_id),
  );
  if (!checked.ok) throw new TypeError('a look was refused');
  const { value: claim } = checked.value;
  return claim ? nextCheck(claim, check.at) : null;
};
