import type { ProviderRecord } from '../../domain/lookup/answers.ts';
import { type Provider, parseProviderRecord } from '../../processors/lookup/providers/provider.ts';

export const record = (fields: object): ProviderRecord =>
  parseProviderRecord({ match_type: 'unclassified', ...fields });

export const aCompany = (name: string, more: object = {}): ProviderRecord =>
  record({ match_type: 'company', company: { name }, network: { is_isp: false }, ...more });

/** A provider whose answers a test sets, address by address. */
export interface ScriptedProvider extends Provider {
  /** Sets its answer from now on: a record, null (unknown), `fails`, or `hangs` (until the attempt is aborted). */
  says(ip: string, answer: ProviderRecord | null | 'fails' | 'hangs'): void;
  /** Sets the answer for every other address. */
  saysOtherwise(answer: ProviderRecord | null | 'fails' | 'hangs'): void;
  asked(ip: string): number;
}

export const scriptedProvider = (name = 'scripted'): ScriptedProvider => {
  const answers = new Map<string, ProviderRecord | null | 'fails' | 'hangs'>();
  const asked = new Map<string, number>();
  let otherwise: ProviderRecord | null | 'fails' | 'hangs' = null;
  return {
    name,
    says: (ip, answer) => void answers.set(ip, answer),
    saysOtherwise: (answer) => {
      otherwise = answer;
    },
    asked: (ip) => asked.get(ip) ?? 0,
    lookup: (ip, signal) => {
      asked.set(ip, (asked.get(ip) ?? 0) + 1);
      const answer = answers.has(ip) ? answers.get(ip) : otherwise;
      if (answer === 'fails') return Promise.reject(new Error('scripted failure'));
      if (answer !== 'hangs') return Promise.resolve(answer ?? null);
      return new Promise((_resolve, reject) => {
        const gone = () => reject(new Error('given up'));
        if (signal.aborted) gone();
        signal.addEventListener('abort', gone);
      });
    },
  };
};
