/** Makes partners and keys in this process, which takes a fraction of the time of the command. */
import { v7 as uuid } from 'uuid';
import type { Runtime } from '../../bin/runtime.ts';
import { createKey, createPartner, newApiKey } from '../../commands/partners/manage-partner.ts';
import type { KeyLimits } from '../../domain/partners/events.ts';
import { DEFAULT_LIMITS } from '../../domain/partners/partner.ts';

export interface Key {
  readonly api_key: string;
  readonly key_id: string;
  readonly partner_id: string;
}

const READY_MS = 10_000;

/** Creates a key of a new partner, or of `partner_id`, and waits until these read models know it. */
export const makeKey = async (
  runtime: Runtime,
  limits: Partial<KeyLimits>,
  readModels: readonly string[],
  partner_id?: string,
): Promise<Key> => {
  const { store, clock, progress } = runtime;
  const context = () => ({ correlationId: uuid(), causationId: uuid(), at: clock.now() });
  const newPartner = async (): Promise<string> => {
    const made = await createPartner(store, `partner ${uuid()}`, context());
    if (!made.ok) throw new Error(made.refusal);
    return made.value.partner_id;
  };
  const partner = partner_id ?? (await newPartner());
  const wanted = {
    partner_id: partner,
    name: `key ${uuid()}`,
    limits: { ...DEFAULT_LIMITS, ...limits },
    api_key: newApiKey(),
    by: 'operator',
  } as const;
  const made = await createKey(store, wanted, context());
  if (!made.ok) throw new Error(made.refusal);
  await progress.reached(readModels, made.value.position, READY_MS);
  return { api_key: made.value.api_key, key_id: made.value.key_id, partner_id: partner };
};
