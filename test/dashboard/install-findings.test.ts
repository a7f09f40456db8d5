import { describe, expect, it } from 'vitest';
import { type InstallEvidence, judgeInstallation } from '../../web/dashboard/install-findings.ts';

const AT = '2026-03-14T12:00:00.000Z';
const NOW = Date.parse(AT) + 60_000;
const SERVICE = 'https://doorplate.example';
const ORIGINS = ['https://www.example.com', 'https://*.example.org'];
const NOTHING: InstallEvidence = {
  hours: [],
  visits: null,
  scripts: null,
  crawlers: null,
  prefetches: null,
  refusals: [],
  origins: [],
  hosts: [],
  hasEnoughTabs: false,
  hasManyAddresses: false,
  hasPublicAddress: false,
  lastVisitHour: null,
};
const seen = (count: number) => ({ count, last_at: AT });
const refused = (reason: InstallEvidence['refusals'][number]['reason'], count = 3) => ({
  reason,
  ...seen(count),
});
const RECEIVING = {
  visits: seen(312),
  lastVisitHour: '2026-03-14T12:00:00.000Z',
  hasManyAddresses: true,
  hasPublicAddress: true,
};

const judged = (over: Partial<InstallEvidence>, disabled = false) => {
  const tracker = { disabled, origins: ORIGINS };
  const { state, findings } = judgeInstallation(tracker, SERVICE, { ...NOTHING, ...over }, NOW);
  return [state, ...findings.map(({ name }) => name)];
};

describe('the install check', () => {
  it.each<[what: string, over: Partial<InstallEvidence>, judgement: string[]]>([
    ['waits while nothing has ever come', {}, ['waiting', 'no_script']],
    ['is content with visits of many public addresses', RECEIVING, ['receiving']],
    [
      'blames the policy or a blocker for a script without visits',
      { scripts: seen(14) },
      ['trouble', 'no_visit'],
    ],
    [
      'blames the origin, which explains the loads of the script',
      { scripts: seen(3), refusals: [refused('wrong_origin')] },
      ['trouble', 'wrong_origin'],
    ],
    [
      'blames the policy too where the script was loaded more often than visits were refused',
      { scripts: seen(30), refusals: [refused('wrong_origin')] },
      ['trouble', 'wrong_origin', 'no_visit'],
    ],
    ['blames the host', { refusals: [refused('untrusted_host')] }, ['trouble', 'untrusted_host']],
    ['blames labels', { refusals: [refused('invalid_labels')] }, ['trouble', 'invalid_labels']],
    ['blames bodies', { refusals: [refused('invalid_body')] }, ['trouble', 'invalid_body']],
    ['names crawlers', { crawlers: seen(2), scripts: seen(2) }, ['trouble', 'only_crawlers']],
    [
      'names a website that has become quiet',
      { lastVisitHour: '2026-03-11T12:00:00.000Z' },
      ['trouble', 'quiet'],
    ],
    [
      'forgets refusals of the days before',
      { ...RECEIVING, refusals: [refused('wrong_origin', 0)] },
      ['receiving'],
    ],
    [
      'names refusals beside visits',
      { ...RECEIVING, refusals: [refused('wrong_origin'), refused('rate'), refused('unavailable')] },
      ['receiving', 'wrong_origin', 'rate', 'unavailable'],
    ],
    [
      'suspects a proxy where many tabs have one address',
      { ...RECEIVING, hasManyAddresses: false, hasEnoughTabs: true },
      ['receiving', 'one_address'],
    ],
    [
      'suspects none where few tabs have one address',
      { ...RECEIVING, hasManyAddresses: false },
      ['receiving'],
    ],
    [
      'suspects none where few visits have one address',
      { ...RECEIVING, visits: seen(19), hasManyAddresses: false, hasEnoughTabs: true },
      ['receiving'],
    ],
    [
      'suspects a proxy where all addresses are private',
      { ...RECEIVING, visits: seen(1), hasPublicAddress: false },
      ['receiving', 'private_address'],
    ],
  ])('%s', (_what, over, judgement) => {
    expect(judged(over)).toEqual(judgement);
  });

  it('waits for evidence that is up to ten seconds late before it calls a visit missing', () => {
    const ago = (ms: number, count = 3) => ({ count, last_at: new Date(NOW - ms).toISOString() });
    expect(judged({ lastVisitHour: '2026-03-14T12:00:00.000Z' })).toEqual(['waiting']);
    expect(judged({ lastVisitHour: '2026-03-14T12:00:00.000Z', scripts: seen(3) })).toEqual(['waiting']);
    expect(judged({ scripts: ago(5_000) })).toEqual(['waiting']);
    expect(judged({ crawlers: ago(5_000) })).toEqual(['waiting']);
    expect(judged({ scripts: ago(16_000) })).toEqual(['trouble', 'no_visit']);
    expect(judged({ scripts: ago(5_000, 20) })).toEqual(['trouble', 'no_visit']);
    expect(judged({ scripts: ago(5_000), refusals: [refused('wrong_origin')] })).toEqual([
      'trouble',
      'wrong_origin',
    ]);
  });

  it('believes usage that a website was visited today, where the evidence of it is missing', () => {
    const hour = { lastVisitHour: '2026-03-14T10:00:00.000Z' };
    expect(judged(hour)).toEqual(['receiving']);
    expect(judged({ ...hour, scripts: { count: 1, last_at: new Date(NOW - 5_000).toISOString() } })).toEqual([
      'receiving',
    ]);
    expect(judged({ ...hour, refusals: [refused('wrong_origin', 50)] })).toEqual([
      'receiving',
      'wrong_origin',
    ]);
    expect(judged({ lastVisitHour: '2026-03-13T13:00:00.000Z' })).toEqual(['receiving']);
  });

  it('says of a disabled tracker that it is disabled, whatever else there is', () => {
    expect(judged({}, true)).toEqual(['trouble', 'disabled']);
    expect(judged({ ...RECEIVING, refusals: [refused('disabled')] }, true)).toEqual(['trouble', 'disabled']);
    expect(judged({ ...RECEIVING, refusals: [refused('disabled')] })).toEqual(['receiving']);
  });

  it('forgets an origin that has been added since', () => {
    const of = (...names: string[]) =>
      judged({
        ...RECEIVING,
        refusals: [refused('wrong_origin')],
        origins: names.map((name) => ({ name, last_at: AT })),
      });
    expect(of('https://www.example.com', 'https://a.b.example.org')).toEqual(['receiving']);
    for (const other of ['https://example.org', 'https://evilexample.org', 'http://a.example.org'])
      expect(of(other, 'https://www.example.com'), other).toEqual(['receiving', 'wrong_origin']);
  });

  it('waits for the next visit where the origin of all refused ones has been added since, and blames nothing else', () => {
    const origins = [{ name: 'https://www.example.com', last_at: AT }];
    expect(judged({ scripts: seen(3), refusals: [refused('wrong_origin')], origins })).toEqual(['waiting']);
  });

  it('names what was seen, what to change and where, with the lines to copy', () => {
    const origins = ['a', 'b', 'c', 'd'].map((name) => ({ name: `https://${name}.example`, last_at: AT }));
    const evidence = {
      ...NOTHING,
      scripts: seen(1_400),
      origins,
      refusals: [refused('wrong_origin', 1)],
    };
    const { findings } = judgeInstallation({ disabled: false, origins: ORIGINS }, SERVICE, evidence, NOW);
    expect(findings.map((finding) => finding.seen)).toEqual([
      'Visits arrive from origins that are not allowed: https://a.example, https://b.example, https://c.example and 1 more.',
      'The script was loaded 1,400 times, but no visit arrived.',
    ]);
    expect(findings[1]?.copy).toBe(`script-src ${SERVICE}; connect-src ${SERVICE}`);
    for (const { change, where } of findings) expect([change, where]).not.toContain('');
  });
});
