import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hostName, profileName, websiteHost } from '../../domain/kernel/text.ts';
import { readSignals } from '../../domain/signals/observation.ts';
import { candidateOf, type SeenDomain } from '../../read-api/signals/clues.ts';
import { signal } from '../support/signals.ts';

const AT = Date.parse('2026-03-01T12:00:00.000Z');

describe('a host name', () => {
  it.each([
    ['acme.io', 'acme.io'],
    ['ACME.Io', 'acme.io'],
    ['localhost', 'localhost'],
    ['bücher.de', 'xn--bcher-kva.de'],
    ['xn--bcher-kva.de', 'xn--bcher-kva.de'],
    [`${'a'.repeat(63)}.de`, `${'a'.repeat(63)}.de`],
  ])('is normalized from %s: %s', (text, name) => expect(hostName(text)).toBe(name));

  it.each([
    ...['', '.', 'acme.io.', '.acme.io', 'acme..io', '-acme.io', 'acme-.io', 'ac_me.io', 'acme.io:443'],
    ...['https://acme.io', 'acme.io/path', 'someone@acme.io', 'acme io', 'acme.io\u0000', 'a%2eb.io'],
    ...['1.2.3.4', '1.2.0x3', '0x7f.1', '[::1]', `${'a'.repeat(64)}.de`, `${'a.'.repeat(127)}de`],
  ])('is not %j', (text) => expect(hostName(text)).toBeNull());
});

describe("a company's website", () => {
  it.each([
    ['acme.io', 'acme.io'],
    ['www.acme.io', 'acme.io'],
    ['https://WWW.Acme.io:8443/about?x#y', 'acme.io'],
    [' http://shop.acme.io/ ', 'shop.acme.io'],
    ['acme.io./', 'acme.io'],
    ['https://www.www.acme.io', 'www.acme.io'],
    ['https://www.com', 'www.com'],
    ['https://bücher.de', 'xn--bcher-kva.de'],
  ])('%s has the host name %s', (website, host) => expect(websiteHost(website)).toBe(host));

  it.each([null, '', 'n/a ?', 'https://1.2.3.4/', 'https://', 'mailto:info@acme.io'])(
    '%s has no host name',
    (website) => expect(websiteHost(website)).toBeNull(),
  );
});

describe('a batch of signals', () => {
  const wrong = (entry: unknown) => readSignals({ signals: [signal(AT), entry] });

  it('is read as it was sent, in the form used for comparisons', () => {
    const sent = signal(AT, { ip: '::ffff:8.8.4.4', email_domain: 'ACME.io', page_run_id: null });
    expect(readSignals({ signals: [sent] })).toEqual({
      ok: true,
      value: [
        {
          event_id: sent.event_id,
          ip: '8.8.4.4',
          email_domain: 'acme.io',
          submitted: true,
          site: sent.site,
          installation_id: sent.installation_id,
          page_run_id: null,
          occurred_at: AT,
        },
      ],
    });
    const later = signal(AT, { occurred_at: '2026-03-01T14:00:00+02:00' });
    expect(readSignals({ signals: [later] })).toMatchObject({ value: [{ occurred_at: AT }] });
  });

  it.each([
    ['event_id', ['', 7, null, 'a b', 'a@b', 'ü', 'x'.repeat(129)]],
    ['ip', ['', 7, null, '10.0.0.1', '8.8.8', '8.8.8.8/32', 'fe80::1', '[2600::1]']],
    ['email_domain', ['', 7, null, 'someone@acme.io', '@acme.io', 'acme.io.', '1.2.3.4', 'acme_.io']],
    ['evidence', ['', 7, null, 'Submitted', 'guessed']],
    ['site', ['', 7, null, 'https://acme.io', 'acme.io:80', 'someone@acme.io']],
    ['installation_id', ['', 7, null, 'someone@acme.io', 'x'.repeat(201), 'a\u0000', '\ud800']],
    ['page_run_id', ['', 7, 'someone@acme.io', 'x'.repeat(201)]],
    ['occurred_at', ['', 7, null, 'yesterday', '2026-02-30T00:00:00Z', '2026-03-01T12:00:00', '2026-03-01']],
  ])('is refused for a wrong %s', (field, values) => {
    for (const value of values) {
      expect(wrong(signal(AT, { [field]: value }))).toEqual({ ok: false, index: 1, field });
    }
    const { [field]: _, ...without } = signal(AT);
    expect(wrong(without)).toEqual({ ok: false, index: 1, field: null });
  });

  it('is refused for an entry with unknown fields or of the wrong type', () => {
    for (const entry of [{ ...signal(AT), email: 'someone@acme.io' }, null, [], 'x', 7]) {
      expect(wrong(entry)).toEqual({ ok: false, index: 1, field: null });
    }
  });

  it('is refused as a whole when it is not a batch', () => {
    for (const body of [null, [], 'x', {}, { signals: {} }, { signals: [], more: 1 }, [signal(AT)]]) {
      expect(readSignals(body)).toEqual({ ok: false, index: null, field: null });
    }
    expect(readSignals({ signals: [] })).toEqual({ ok: true, value: [] });
  });

  it('has at most a thousand entries', () => {
    const most = Array.from({ length: 1_000 }, () => signal(AT));
    expect(readSignals({ signals: most }).ok).toBe(true);
    expect(readSignals({ signals: [...most, signal(AT)] })).toEqual({ ok: false, index: 1_000, field: null });
  });

  it('never accepts a value with an @ and reports the first invalid entry', () => {
    const field = fc.constantFrom(...Object.keys(signal(AT)));
    const value = fc.oneof(
      ...[fc.anything(), fc.string({ unit: 'binary' }), fc.emailAddress(), fc.domain(), fc.ipV4(), fc.ipV6()],
      fc.string().map((text) => `${text}@`),
    );
    const entry = fc
      .tuple(field, value)
      .map(([name, sent]) => ({ ...signal(AT, { event_id: 'one' }), [name]: sent }));
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 5 }), (signals) => {
        const read = readSignals({ signals });
        const alone = signals.map((one) => readSignals({ signals: [one] }));
        expect(read.ok).toBe(alone.every(({ ok }) => ok));
        if (read.ok) {
          expect(read.value).toHaveLength(signals.length);
          expect(JSON.stringify(read.value)).not.toContain('@');
          for (const { email_domain, site } of read.value) {
            expect([hostName(email_domain), hostName(site)]).toEqual([email_domain, site]);
          }
        } else expect(read.index).toBe(alone.findIndex(({ ok }) => !ok));
      }),
      { numRuns: 60 },
    );
  });
});

describe('a candidate', () => {
  const seen: SeenDomain = {
    domain: 'acme.io',
    first_seen_at: '2026-03-01T12:00:00.000Z',
    last_seen_at: '2026-03-02T12:00:00.000Z',
    observations: 3,
    submitted_observations: 1,
    observed_visits: 2,
    sites: 1,
  };
  const acme = { name: 'Acme', brand_name: null };
  const flags = (over: Partial<SeenDomain>, profile: typeof acme | 'several' | null) =>
    candidateOf({ ...seen, ...over }, profile, null).flags;

  it('contains what was observed and the company of its domain', () => {
    expect(candidateOf(seen, acme, null)).toEqual({
      ...seen,
      company: acme,
      verified: false,
      evidence: 'submitted',
      flags: [],
    });
    expect(candidateOf(seen, 'several', null).company).toBeNull();
  });

  it('contains the warnings', () => {
    expect(flags({ submitted_observations: 0 }, acme)).toEqual(['field_only']);
    expect(candidateOf({ ...seen, submitted_observations: 0 }, acme, null).evidence).toBe('field_only');
    expect(flags({}, null)).toEqual(['unmatched_domain']);
    expect(flags({}, 'several')).toEqual(['ambiguous_domain']);
    expect(flags({ observations: 1 }, acme)).toEqual(['single_observation']);
    expect(flags({ observations: 1, submitted_observations: 0 }, null)).toEqual([
      'field_only',
      'unmatched_domain',
      'single_observation',
    ]);
  });

  it('differs from the lookup when both name a company and the companies differ', () => {
    const found = (name: string | null, host: string | null) => ({
      company: { name, brand_name: null },
      host,
    });
    const differs = (known: ReturnType<typeof found>, profile: typeof acme | 'several' | null = acme) =>
      candidateOf(seen, profile, known).flags.includes('differs_from_lookup');
    expect(differs(found('Other', 'other.io'))).toBe(true);
    expect(differs(found('Other', null))).toBe(true);
    expect(differs(found('Something else', 'acme.io'))).toBe(false);
    expect(differs(found(' ACME ', 'acme.com'))).toBe(false);
    expect(differs(found(null, null), { name: '', brand_name: null })).toBe(true);
    expect(differs(found('Other', 'other.io'), null)).toBe(false);
    expect(differs(found('Other', 'other.io'), 'several')).toBe(false);
  });

  it('is one company whatever the spelling of its name', () => {
    expect(profileName({ name: ' Acme \n Inc ', brand_name: 'x' })).toBe('acme inc');
    expect(profileName({ name: null, brand_name: 'Acme' })).toBe('acme');
    expect(profileName({ name: null, brand_name: null })).toBe('');
    expect(profileName({ name: 'ab'.repeat(200), brand_name: null })).toBe('ab'.repeat(100));
    expect(profileName({ name: `a${'😀'.repeat(300)}`, brand_name: null })).toBe(`a${'😀'.repeat(199)}`);
  });
});
