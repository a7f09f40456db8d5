import { checkbox, field } from '../components.ts';
import { html } from '../html.ts';
import { textOf, type Visit } from '../visit.ts';
export interface KeyLimitValues {
  readonly requests_per_second: number;
  readonly new_enrichments_per_day: number | null;
  readonly pending_enrichments: number;
  readonly company_signals: boolean;
  readonly expires_at: string | null;
}

export interface KeyCeilings {
  readonly requests_per_second: number;
  /** null: no ceiling. */
  readonly new_enrichments_per_day: number | null;
  readonly pending_enrichments: number;
  /** Keys that are neither revoked nor expired. */
  readonly keys: number;
  readonly company_signals: boolean;
}

/** The usual limits of a new key, as far as the ceilings allow. */
export const within = (usual: KeyLimitValues, ceilings: KeyCeilings): KeyLimitValues => ({
  ...usual,
  requests_per_second: Math.min(usual.requests_per_second, ceilings.requests_per_second),
  new_enrichments_per_day: usual.new_enrichments_per_day ?? ceilings.new_enrichments_per_day,
  pending_enrichments: Math.min(usual.pending_enrichments, ceilings.pending_enrichments),
});

const atMost = (ceiling: number): string => `At most ${ceiling}.`;

export const limitFields = (limits: KeyLimitValues, ceilings: KeyCeilings) => html`
  ${field('Requests a second', 'requests_per_second', { type: 'number', min: 1, value: shown(limits.requests_per_second), required: true, hint: atMost(ceilings.requests_per_second) })}
  ${field('New enrichments a day', 'new_enrichments_per_day', {
    type: 'number',
    min: 0,
    value: limits.new_enrichments_per_day === null ? '' : shown(limits.new_enrichments_per_day),
    hint: `${ceilings.new_enrichments_per_day === null ? 'Empty: no cap.' : atMost(ceilings.new_enrichments_per_day)} 0: saved addresses only.`,
  })}
  ${field('Pending enrichments', 'pending_enrichments', { type: 'number', min: 0, value: shown(limits.pending_enrichments), required: true, hint: `Unfinished ones of all keys together. ${atMost(ceilings.pending_enrichments)}` })}
  ${field('Expires', 'expires_at', { type: 'datetime-local', value: minuteOf(limits.expires_at), hint: 'UTC. Empty: never.' })}
  ${(ceilings.company_signals || limits.company_signals) && checkbox('Answers carry company signals', 'company_signals', 'yes', limits.company_signals)}`;

export const minuteOf = (expiresAt: string | null): string => expiresAt?.slice(0, 16) ?? '';

const shown = (value: number): string => (Number.isNaN(value) ? '' : String(value));

/** Parses the form; the command refuses NaN and an impossible time. */
export const limitsIn = (visit: Visit): KeyLimitValues => {
  const cap = textOf(visit, 'new_enrichments_per_day');
  const expires = textOf(visit, 'expires_at');
  return {
    requests_per_second: wholeIn(visit, 'requests_per_second'),
    new_enrichments_per_day: cap === '' ? null : wholeIn(visit, 'new_enrichments_per_day'),
    pending_enrichments: wholeIn(visit, 'pending_enrichments'),
    company_signals: visit.form.get('company_signals') === 'yes',
    // Browsers omit seconds of zero.
    expires_at: expires === '' ? null : `${expires}${expires.length === 16 ? ':00' : ''}Z`,
  };
};

const wholeIn = (visit: Visit, name: string): number => {
  const text = textOf(visit, name);
  return /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
};
