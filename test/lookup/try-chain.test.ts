import { describe, expect, it } from 'vitest';
import { tryChain } from '../../processors/lookup/providers/chain.ts';
import { NotAsked, type Provider } from '../../processors/lookup/providers/provider.ts';
import { aCompany, record, scriptedProvider } from '../support/providers.ts';

const IP = '8.8.8.8';
const how = { signal: new AbortController().signal, at: Date.parse('2026-03-01T12:00:00Z') };
const says = (name: string, answer: Parameters<ReturnType<typeof scriptedProvider>['says']>[1]): Provider => {
  const provider = scriptedProvider(name);
  provider.says(IP, answer);
  return provider;
};
const outcomes = ({ providers }: Awaited<ReturnType<typeof tryChain>>) =>
  providers.map(({ provider, outcome, counts }) => [provider, outcome, counts]);

describe('a trial of the provider chain', () => {
  it('asks every provider, and combines the answers up to the first company', async () => {
    const isp = record({ match_type: 'isp', company: { name: 'Telia', city: 'Oslo' } });
    const tried = await tryChain(
      [says('a', isp), says('b', aCompany('Acme')), says('c', aCompany('Other')), says('d', null)],
      IP,
      how,
    );
    expect(outcomes(tried)).toEqual([
      ['a', 'isp', true],
      ['b', 'company', true],
      ['c', 'company', false],
      ['d', 'unknown', false],
    ]);
    expect(tried.result).toMatchObject({ match_type: 'company', company: { name: 'Acme', city: 'Oslo' } });
  });

  it('shows the raw answer, also where it cannot be mapped', async () => {
    const odd: Provider = {
      name: 'odd',
      lookup: async (_ip, _signal, { onRaw } = {}) => {
        onRaw?.({ odd: true });
        throw new Error('wrong record');
      },
    };
    const { providers, result } = await tryChain([odd], IP, how);
    expect(providers).toMatchObject([
      {
        provider: 'odd',
        outcome: 'failed',
        reason: 'wrong record',
        raw: { odd: true },
        record: null,
        counts: false,
      },
    ]);
    expect(result).toBeNull();
  });

  it('has no result while a provider is held back and no other knows the address', async () => {
    const heldBack: Provider = {
      name: 'held-back',
      lookup: () => Promise.reject(new NotAsked('not asked: its budget of today is used up')),
    };
    const tried = await tryChain([says('a', null), heldBack], IP, how);
    expect(outcomes(tried)).toEqual([
      ['a', 'unknown', true],
      ['held-back', 'not_asked', false],
    ]);
    expect(tried.result).toBeNull();
  });
});
