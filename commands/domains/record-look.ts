import { domainStream, nextLook } from '../../domain/domains/domain.ts';
import type { EventStore } from '../../event-store/port.ts';
import { type CommandContext, handle } from '../handle.ts';
import { domainAggregate } from './aggregates.ts';

/** What a look at a name has found. */
export interface Look {
  readonly domain_id: string;
  readonly hostname: string;
  /** When it began, in milliseconds. */
  readonly at: number;
  /** Why the name does not point here; null: it does. */
  readonly error: string | null;
}

/** Writes down what is new in it. @returns when to look again, in milliseconds; null: never */
export const recordLook = async (
  store: EventStore,
  look: Look,
  context: CommandContext,
): Promise<number | null> => {
  const command = { type: 'Look', ...look } as const;
  const looked = await handle(store, domainAggregate, domainStream(look.hostname), command, context);
  if (!looked.ok) throw new TypeError('a look was refused');
  const { state } = looked.value;
  return state?.domain_id === look.domain_id ? nextLook(state, look.at) : null;
};
