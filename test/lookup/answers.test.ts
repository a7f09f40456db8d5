import { describe, expect, it } from 'vitest';
import {
  answeredIn,
  combineAnswers,
  completeResult,
  type ProviderAnswer,
  type ProviderRecord,
} from '../../domain/lookup/answers.ts';
import { type Company, companySchema, networkSchema } from '../../domain/lookup/result.ts';
import { AT, IP, result } from './lookup-events.ts';

const record = (over: Partial<ProviderRecord>): ProviderRecord => ({
  match_type: 'unclassified',
  network: null,
  company: null,
  fresh_for_days: null,
  ...over,
});
const company = (over: Partial<Company>): Company => companySchema.parse(over);
const says = (provider: string, over: Partial<ProviderRecord>): ProviderAnswer => ({
  provider,
  record: record(over),
});
const fails = (provider: string): ProviderAnswer => ({ provider, failure: 'timed out' });
const combine = (answers: ProviderAnswer[], earlier = null as Parameters<typeof combineAnswers>[2]) =>
  combineAnswers(IP, answers, earlier, AT);
const inDays = (days: number) => new Date(AT + days * 86_400_000).toISOString();

describe('the answers of a provider chain', () => {
  it('make a completed unclassified result without fields when no provider knows the address', () => {
    expect(combine([says('a', {}), says('b', {})])).toEqual({
      outcome: 'result',
      result: {
        ip: IP,
        match_type: 'unclassified',
        network: networkSchema.parse({}),
        company: null,
        sources: [],
        enriched_at: inDays(0),
        fresh_until: inDays(7),
        needs_company_enrichment: false,
        answered_by: ['a', 'b'],
      },
      companyOf: null,
    });
  });
  it('put the company first and fill its gaps in order', () => {
    const combined = combine([
      says('a', {
        match_type: 'isp',
        network: networkSchema.parse({ is_isp: true, connection_type: 'cable' }),
        company: company({ name: 'Cable Co', city: 'Bonn' }),
      }),
      says('b', {
        match_type: 'company',
        network: networkSchema.parse({ is_isp: false }),
        company: company({ name: 'Acme' }),
      }),
    ]);
    expect(combined).toMatchObject({
      result: {
        match_type: 'company',
        company: { name: 'Acme', city: 'Bonn' },
        network: { is_isp: false, connection_type: 'cable' },
        sources: ['b', 'a'],
        fresh_until: inDays(30),
      },
    });
  });
  it('prefer isp to unclassified', () => {
    expect(
      combine([says('a', { company: company({ name: 'X' }) }), says('b', { match_type: 'isp' })]),
    ).toMatchObject({
      result: { match_type: 'isp', fresh_until: inDays(7), company: { name: 'X' } },
    });
  });
  it('take the freshness of the provider with the leading match', () => {
    expect(combine([says('a', { match_type: 'company', fresh_for_days: 3 })])).toMatchObject({
      result: { fresh_until: inDays(3) },
    });
  });
  it('with a failure and data are saved as incomplete', () => {
    expect(combine([says('a', { match_type: 'isp' }), fails('b')])).toMatchObject({
      result: { match_type: 'isp', needs_company_enrichment: true },
    });
    expect(
      combine([fails('a'), says('b', { network: networkSchema.parse({ audience_type: 'business' }) })]),
    ).toMatchObject({
      result: { match_type: 'unclassified', needs_company_enrichment: true },
    });
  });
  it('with a failure before a company are complete', () => {
    expect(combine([fails('a'), says('b', { match_type: 'company' })])).toMatchObject({
      result: { match_type: 'company', needs_company_enrichment: false },
    });
  });
  it('with a failure and no data are a failed attempt, never a negative match', () => {
    const failures = [{ provider: 'b', reason: 'timed out' }];
    expect(combine([says('a', {}), fails('b')])).toEqual({ outcome: 'failed', failures, answered: ['a'] });
    expect(combine([fails('b')])).toEqual({ outcome: 'failed', failures, answered: [] });
  });
});

describe('a refresh', () => {
  const earlier = result({ match_type: 'company', company: company({ name: 'Acme', city: 'Bonn' }) });
  it('replaces the earlier result when every provider answered', () => {
    expect(combine([says('a', { match_type: 'isp' }), says('b', {})], earlier)).toMatchObject({
      result: { match_type: 'isp', company: null },
    });
  });
  it('never removes data when a provider failed', () => {
    expect(combine([says('a', { match_type: 'isp' }), fails('b')], earlier)).toMatchObject({
      outcome: 'failed',
    });
    expect(
      combine(
        [
          fails('a'),
          says('b', { match_type: 'company', company: company({ name: 'Acme II', region: 'NRW' }) }),
        ],
        earlier,
      ),
    ).toMatchObject({
      result: { match_type: 'company', company: { name: 'Acme', city: 'Bonn', region: 'NRW' } },
    });
  });
});

describe('the completion of a result', () => {
  const earlier = result({
    match_type: 'isp',
    network: networkSchema.parse({ is_isp: true }),
    company: company({ name: 'Telia' }),
    sources: ['a'],
    answered_by: ['a', 'b'],
    fresh_until: inDays(3),
  });
  it('adds what the other providers say, and stays fresh as long as the earlier answers', () => {
    const added = says('c', { network: networkSchema.parse({ is_isp: false, connection_type: 'vpn' }) });
    expect(completeResult(earlier, [added], AT)).toMatchObject({
      companyOf: null,
      result: {
        match_type: 'isp',
        network: { is_isp: true, connection_type: 'vpn' },
        company: { name: 'Telia' },
        sources: ['a', 'c'],
        answered_by: ['a', 'b', 'c'],
        fresh_until: inDays(3),
        needs_company_enrichment: false,
      },
    });
  });
  it("puts another provider's company first, with its own freshness", () => {
    const found = says('c', { match_type: 'company', company: company({ name: 'Acme' }) });
    expect(completeResult(earlier, [found], AT)).toMatchObject({
      companyOf: 'c',
      result: {
        match_type: 'company',
        company: { name: 'Acme' },
        sources: ['c', 'a'],
        fresh_until: inDays(30),
      },
    });
  });
  it('is a failed attempt while another provider fails and none finds a company', () => {
    expect(completeResult(earlier, [says('c', {}), fails('d')], AT)).toEqual({
      outcome: 'failed',
      failures: [{ provider: 'd', reason: 'timed out' }],
      answered: ['c'],
    });
  });
  it('is complete without an answer when the providers that it lacked are configured no more', () => {
    expect(completeResult({ ...earlier, needs_company_enrichment: true }, [], AT)).toMatchObject({
      result: { match_type: 'isp', answered_by: ['a', 'b'], needs_company_enrichment: false },
    });
  });
  it('asks again who failed in a release that did not record it', () => {
    expect(answeredIn({ ...earlier, needs_company_enrichment: true })).toEqual(['a']);
    expect(answeredIn(earlier)).toEqual(['a', 'b']);
  });
});
