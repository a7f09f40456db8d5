import { savedForReveal } from '../../commands/lookup/reveal-lookups.ts';
import type { RevealResult } from '../../domain/reveals/events.ts';
import type { Runtime } from '../runtime.ts';

/** Returns the saved result of an address for a reveal, and records its use. */
export const useSavedResults =
  ({
    store,
    digest,
    lookupUses,
    providers,
  }: Pick<Runtime, 'store' | 'digest' | 'lookupUses' | 'providers'>) =>
  async (ip: string, partnerId: string, at: number): Promise<RevealResult | null> => {
    const saved = await savedForReveal(
      { store, digest, configured: providers.configured },
      ip,
      partnerId,
      at,
    );
    if (saved !== null) lookupUses.note(ip);
    return saved;
  };
