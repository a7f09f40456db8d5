import { z } from 'zod';
import { parsePublicAddress } from '../../../domain/kernel/address.ts';
import type { ProviderAnswer, ProviderRecord } from '../../../domain/lookup/answers.ts';
import { companySchema, matchTypeSchema, networkSchema } from '../../../domain/lookup/result.ts';
import type { ProviderOutcome } from '../../../platform/telemetry/metrics.ts';

/** What a lookup tells beside its result, and what it may do. */
interface LookupOptions {
  /** Called with the source's own answer before it is mapped. */
  readonly onRaw?: ((raw: unknown) => void) | undefined;
  /** Awaited before the source is asked once more within the same lookup. @throws NotAsked */
  readonly again?: (() => Promise<void>) | undefined;
  /** Whether the lookup may probe a provider whose circuit breaker is open. Default: it may. */
  readonly mayProbe?: boolean | undefined;
}

/** A source of company data. */
export interface Provider {
  readonly name: string;
  /**
   * Returns the record of a canonical public address; null if it is unknown.
   * @throws if the lookup failed or timed out
   */
  lookup(ip: string, signal: AbortSignal, options?: LookupOptions): Promise<ProviderRecord | null>;
  /** Whether it is known that a lookup would be held back now. Default: it is not. */
  isHeldBack?(): boolean;
  /** Whether one lookup may probe it now, though others are held back. Default: no. */
  hasProbe?(): boolean;
}

/** The provider is down or refuses every call; other failures are of one address alone. */
export class Unavailable extends Error {}

/** The provider was held back, so that nothing is known of what it would have answered. */
export class NotAsked extends Error {}

/** The record of an address that a provider does not know. */
export const UNKNOWN: ProviderRecord = {
  match_type: 'unclassified',
  network: null,
  company: null,
  fresh_for_days: null,
};

export interface ChainNotes {
  /** Called for each provider that was asked or held back. `ms`: duration of the call. */
  asked(provider: string, outcome: ProviderOutcome, ms: number): void;
}

interface ChainOptions {
  readonly answered?: readonly string[];
  readonly notes?: ChainNotes;
  readonly mayProbe?: boolean;
}

/** What came of asking one provider. */
interface Asked {
  readonly answer: ProviderAnswer;
  readonly outcome: ProviderOutcome;
  /** Duration of the call, milliseconds. */
  readonly ms: number;
}

/** Asks one provider. A failure is an answer too, which never means that there is no company. */
export async function askProvider(
  { name: provider, lookup }: Provider,
  ip: string,
  signal: AbortSignal,
  options?: LookupOptions,
): Promise<Asked> {
  const started = performance.now();
  const asked = (outcome: ProviderOutcome, answer: ProviderAnswer): Asked => {
    const ms = performance.now() - started;
    return { outcome, answer, ms };
  };
  try {
    const found = await lookup(ip, signal, options);
    return asked(found?.match_type ?? 'unknown', { provider, record: found ?? UNKNOWN });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return error instanceof NotAsked
      ? asked('not_asked', { provider, heldBack: reason })
      : asked('failed', { provider, failure: reason });
  }
}

/**
 * Asks the providers in order until one answers `company` (contract, Providers 1). No provider is asked about an address that is
 * not public. `answered`: providers that are known to know nothing.
 */
export async function askChain(
  chain: readonly Provider[],
  ip: string,
  signal: AbortSignal,
  { answered = [], notes, mayProbe }: ChainOptions = {},
): Promise<ProviderAnswer[]> {
  // An address may have been public in the release that accepted it.
  if (parsePublicAddress(ip) === null) return chain.map(({ name }) => ({ provider: name, record: UNKNOWN }));
  const answers: ProviderAnswer[] = [];
  for (const provider of chain) {
    if (answered.includes(provider.name)) {
      answers.push({ provider: provider.name, record: UNKNOWN });
      continue;
    }
    const { answer, outcome, ms } = await askProvider(provider, ip, signal, { mayProbe });
    notes?.asked(provider.name, outcome, ms);
    answers.push(answer);
    if (outcome === 'company') break;
  }
  return answers;
}

/** PostgreSQL rejects NUL in text, and a lone surrogate is not a valid character. */
const isText = (value: unknown): boolean =>
  typeof value !== 'string' || (value.isWellFormed() && !value.includes('\u0000'));
const isShort = (value: unknown): boolean => jsonBytes(value) <= MAX_FIELD_BYTES;
const all =
  (isValid: (value: unknown) => boolean) =>
  (fields: object | null): boolean =>
    fields === null || Object.values(fields).every(isValid);

/**
 * As JSON. Over time a result may take each field from another record, and what repeats it, sealed, has to fit into an append of
 * 1 MiB: a webhook event that did not would stop the webhooks of all partners.
 */
const MAX_FIELD_BYTES = 16_384;
/** Largest record as JSON: many addresses may have one of this size. */
const MAX_RECORD_BYTES = 65_536;
const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

const storable = <Fields extends z.ZodType<object>>(fields: Fields) =>
  fields
    .nullable()
    .default(null)
    .refine(all(isText), 'holds text that cannot be stored')
    .refine(all(isShort), 'holds text that is too large');

/** A provider's record of one address (contract, Providers 1); every field may be left out. */
const providerRecordSchema = z.object({
  match_type: matchTypeSchema,
  network: storable(networkSchema),
  company: storable(companySchema),
  fresh_for_days: z.int().min(1).max(3_650).nullable().default(null),
});

/** Validates a record. @throws Error with a one-line reason */
export function parseProviderRecord(value: unknown): ProviderRecord {
  const parsed = providerRecordSchema.safeParse(value);
  if (parsed.success) {
    if (jsonBytes(parsed.data) > MAX_RECORD_BYTES) throw new Error('wrong record: it is too large');
    return parsed.data;
  }
  const [issue] = parsed.error.issues;
  throw new Error(`wrong record: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
}
