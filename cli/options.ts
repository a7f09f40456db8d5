import { InvalidArgumentError } from 'commander';
import { hasUsualYear } from '../domain/kernel/time.ts';
import type { Ceilings, KeyLimits } from '../domain/partners/events.ts';
import { LARGEST_LIMIT } from '../domain/partners/partner.ts';

/** Parses an ISO 8601 date, or a time with its zone. @throws InvalidArgumentError */
export function instant(text: string): string {
  const day = text.slice(0, 10);
  const real = !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
  const at =
    real && /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at) || !hasUsualYear(new Date(at).toISOString()))
    throw new InvalidArgumentError('not an ISO 8601 date or time with its zone');
  return new Date(at).toISOString();
}

/** Spelling of null, because commander turns a parsed null into an empty text. */
export const NO_CAP = 'none';

/** Parses a whole number from `least` to 10^9. @throws InvalidArgumentError */
export const wholeFrom =
  (least: number) =>
  (text: string): number => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= LARGEST_LIMIT) return value;
    throw new InvalidArgumentError(`not a whole number from ${least} to ${LARGEST_LIMIT}`);
  };

/** Parses a whole number or `none`. @throws InvalidArgumentError */
export const allowance = (text: string): number | typeof NO_CAP =>
  text === NO_CAP ? NO_CAP : wholeFrom(0)(text);

/** Options of limits: of a key, and of what a partner may give its keys. */
export interface LimitOptions {
  readonly requestsPerSecond?: number;
  readonly newEnrichmentsPerDay?: number | typeof NO_CAP;
  readonly pendingEnrichments?: number;
  readonly companySignals?: boolean;
  readonly json: boolean;
}

/** Returns the given limits by the names that events have. */
export const limitsIn = (options: LimitOptions) =>
  given<Pick<KeyLimits, keyof KeyLimits & keyof Ceilings>>({
    requests_per_second: options.requestsPerSecond,
    new_enrichments_per_day: options.newEnrichmentsPerDay === NO_CAP ? null : options.newEnrichmentsPerDay,
    pending_enrichments: options.pendingEnrichments,
    company_signals: options.companySignals,
  });

/** Removes undefined options. */
export const given = <T extends object>(values: { [K in keyof T]: T[K] | undefined }): Partial<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
