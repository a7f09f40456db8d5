import { domainStream, nextCheck } from '../../domain/domains/domain.ts';
import type { CommandContext } from '../handle.ts';
import type { NamesBatcher } from './aggregates.ts';

/** The result of a DNS check. */
export interface DomainCheck {
  readonly domain_id: string;
  readonly hostname: string;
  /** Start of the check, milliseconds. */
  readonly at: number;
  /** Why the name does not point to the service; null if it does. */
  readonly error: string | null;
  /** Whether the name's TXT record holds the token of the claim's partner. */
  readonly proven: boolean;
}

/** Records a check that changes something. @returns time of the next check, milliseconds; null: none */
export const recordCheck = async (
  names: NamesBatcher,
  check: DomainCheck,
  context: CommandContext,
): Promise<number | null> => {
  const stream = domainStream(check.hostname);
  const checked = await names.submit(stream, { type: 'RecordCheck', ...check }, context, ({ claims }) =>
    claims.get(check.domain_id),
  );
  if (!checked.ok) throw new TypeError('the result of a domain check was refused');
  const { value: claim } = checked.value;
  return claim ? nextCheck(claim, check.at) : null;
};
