import { randomUUID } from 'node:crypto';
import type { LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { tlsAllowed } from '../../bin/modules/domains.ts';
import { setCeilings } from '../../commands/partners/manage-partner.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { createMetrics } from '../../platform/telemetry/metrics.ts';
import { startOpsServer } from '../../platform/telemetry/ops-server.ts';
import { type Key, startApi, type TestApi } from '../support/api.ts';
import { domainsOf, SERVICE_HOST, startTestDns, type TestDns } from '../support/domains.ts';
import { eventually } from '../support/eventually.ts';
import { collect, feed, makeTracker, PAGE } from '../support/tracking.ts';

/** Another name of the service. */
const FORMER_HOST = 'doorplate.example.net';

let dns: TestDns;
let api: TestApi;
let key: Key;
beforeAll(async () => {
  dns = await startTestDns();
  api = await startApi({
    env: {
      PUBLIC_URL: `http://${SERVICE_HOST}`,
      PUBLIC_HOSTS: FORMER_HOST,
      DNS_SERVERS: dns.address,
      CAPTURES_PER_SECOND_PER_VISITOR: '1000',
    },
  });
  key = await api.key();
});
afterAll(async () => {
  await api.close();
  dns.close();
});

const refusalOf = (answer: LightMyRequestResponse) => [answer.statusCode, answer.json().error?.code];
let names = 0;
const newName = (): string => {
  names += 1;
  return `visits${names}.example.com`;
};
/** A tracker with an active domain. */
const activeDomain = async (by: Key = key) => {
  const tracker = await makeTracker(api, by);
  const hostname = newName();
  dns.says(hostname, [SERVICE_HOST]);
  const domains = domainsOf(api, by, tracker);
  const { id } = (await domains.claim(hostname)).json();
  await eventually(
    'it is active',
    () => domains.show(id),
    ({ status }) => status === 'active',
  );
  return { tracker, hostname, id: id as string, domains };
};
const script = (tracker: string, host: string) =>
  api.inject(null, { method: 'GET', url: `/tracking/a.js?tracker_id=${tracker}`, headers: { host } });

describe('a custom domain over HTTP', () => {
  it('is claimed, found to point here, listed with its snippet, and given up', async () => {
    const tracker = await makeTracker(api, key);
    const domains = domainsOf(api, key, tracker);
    const hostname = newName();
    const claimed = await domains.claim(hostname);
    expect(claimed.statusCode).toBe(201);
    const { request_id, ...pending } = claimed.json();
    expect(request_id).toBe(claimed.headers['x-request-id']);
    expect(pending).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      tracker_id: tracker,
      hostname,
      cname_target: SERVICE_HOST,
      verification: null,
      status: 'pending',
      created_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      activated_at: null,
      checked_at: null,
      last_error: null,
      snippet: null,
    });
    const { id } = pending;
    const looked = await eventually(
      'the domain was checked',
      () => domains.show(id),
      (shown) => shown.last_error !== null,
    );
    expect(looked).toMatchObject({ status: 'pending', last_error: 'no_such_name', snippet: null });

    dns.says(hostname, [SERVICE_HOST]);
    await api.runtime.pool.query('update work.domain_look set due_at = looked_at where domain_id = $1', [id]);
    const active = await eventually(
      'it is active',
      () => domains.show(id),
      ({ status, checked_at }) => status === 'active' && checked_at !== null,
    );
    expect(active).toMatchObject({
      created_at: pending.created_at,
      activated_at: expect.any(String),
      checked_at: expect.any(String),
      last_error: null,
      snippet: `<script async src="https://${hostname}/tracking/a.js?tracker_id=${tracker}" data-custom='{}'></script>`,
    });
    const { request_id: _, ...listed } = { request_id: '', ...active };
    expect(await domains.list()).toEqual([listed]);
    const again = await domains.claim(hostname);
    expect([again.statusCode, again.json()]).toEqual([
      201,
      { ...listed, request_id: again.headers['x-request-id'] },
    ]);

    const deleted = await domains.remove(id);
    expect([deleted.statusCode, deleted.json()]).toEqual([
      200,
      { id, deleted: true, deleted_at: expect.any(String), request_id: deleted.headers['x-request-id'] },
    ]);
    expect(await domains.list()).toEqual([]);
    expect(refusalOf(await domains.get(id))).toEqual([404, 'domain_not_found']);
    const repeated = await domains.remove(id);
    expect([repeated.statusCode, repeated.json().deleted_at]).toEqual([200, deleted.json().deleted_at]);
    const reclaimed = await domains.claim(hostname);
    expect([reclaimed.statusCode, reclaimed.json().status]).toEqual([201, 'pending']);
    expect(reclaimed.json().id).not.toBe(id);
  });

  test.each<[string, unknown, string]>([
    ['no hostname', {}, 'invalid_domain'],
    ['a hostname that is no string', { hostname: 7 }, 'invalid_domain'],
    ['capitals', { hostname: 'Visits.example.com' }, 'invalid_domain'],
    ['an IDN in letters', { hostname: 'bücher.example' }, 'invalid_domain'],
    ['an address', { hostname: '8.8.8.8' }, 'invalid_domain'],
    ['one label', { hostname: 'localhost' }, 'invalid_domain'],
    ['a trailing dot', { hostname: 'visits.example.com.' }, 'invalid_domain'],
    ['the service’s own name', { hostname: SERVICE_HOST }, 'invalid_domain'],
    ['a lone surrogate', '{"hostname":"\\ud800.example.com"}', 'invalid_domain'],
    ['another property', { hostname: 'visits.example.com', x: 1 }, 'invalid_body'],
    ['no object', [], 'invalid_body'],
    ['no JSON', '{', 'invalid_json'],
  ])('is refused with %s', async (_what, payload, code) => {
    const answer = await api.inject(key, {
      method: 'POST',
      url: `/v1/trackers/${await makeTracker(api, key)}/domains`,
      headers: { 'content-type': 'application/json' },
      payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
    });
    expect(refusalOf(answer)).toEqual([400, code]);
  });

  test.each([FORMER_HOST, `www.${FORMER_HOST}`, `api.${SERVICE_HOST}`])(
    'is not %s, under which others call the service',
    async (hostname) => {
      dns.says(hostname, [SERVICE_HOST]);
      const other = await api.key();
      const { claim } = domainsOf(api, other, await makeTracker(api, other));
      expect(refusalOf(await claim(hostname))).toEqual([400, 'invalid_domain']);
      const headers = { host: hostname };
      const answer = await api.inject(key, { method: 'GET', url: '/v1/trackers', headers });
      expect(answer.statusCode).toBe(200);
    },
  );

  it('takes 16 KiB of body, and no more', async () => {
    const { claim } = domainsOf(api, key, await makeTracker(api, key));
    expect(refusalOf(await claim('a'.repeat(16_000)))).toEqual([400, 'invalid_domain']);
    expect(refusalOf(await claim('a'.repeat(17_000)))).toEqual([413, 'body_too_large']);
  });

  it('is of a tracker of the partner’s own that is not deleted', async () => {
    const { tracker, id } = await activeDomain(await api.key());
    const deleted = await makeTracker(api, key);
    await api.inject(key, { method: 'POST', url: `/v1/trackers/${deleted}/delete` });
    const cases: [string, number, string][] = [
      [tracker, 404, 'tracker_not_found'],
      [randomUUID(), 404, 'tracker_not_found'],
      ['no-uuid', 400, 'invalid_tracker'],
      [deleted, 410, 'tracker_deleted'],
    ];
    for (const [of, status, code] of cases) {
      const { claim, get, remove } = domainsOf(api, key, of);
      const listed = await api.inject(key, { method: 'GET', url: `/v1/trackers/${of}/domains` });
      for (const answer of [await claim(newName()), await get(id), await remove(id), listed]) {
        expect(refusalOf(answer)).toEqual([status, code]);
      }
    }
  });

  it('is not found under another tracker, or by an invalid id; and there are no queries', async () => {
    const { id, tracker } = await activeDomain();
    const other = domainsOf(api, key, await makeTracker(api, key));
    const own = domainsOf(api, key, tracker);
    for (const answer of [
      await other.get(id),
      await other.remove(id),
      await own.get(randomUUID()),
      await own.remove(randomUUID()),
      await own.get('no-uuid'),
      await own.remove('no-uuid'),
    ]) {
      expect(refusalOf(answer)).toEqual([404, 'domain_not_found']);
    }
    expect(refusalOf(await own.get(`${id}?x=1`))).toEqual([400, 'invalid_query']);
    expect(refusalOf(await own.remove(`${id}?x=1`))).toEqual([400, 'invalid_query']);
    const wrong = await api.inject(key, { method: 'PATCH', url: `/v1/trackers/${tracker}/domains/${id}` });
    expect([wrong.statusCode, wrong.headers.allow]).toEqual([405, 'GET, DELETE']);
  });

  it('has one tracker, whichever partner asks, until it is given up', async () => {
    const { hostname, domains, id } = await activeDomain();
    const rival = domainsOf(api, await api.key(), await makeTracker(api, key));
    const other = await api.key();
    const others = domainsOf(api, other, await makeTracker(api, other));
    expect(refusalOf(await others.claim(hostname))).toEqual([409, 'domain_taken']);
    expect(refusalOf(await rival.claim(hostname))).toEqual([404, 'tracker_not_found']);
    await domains.remove(id);
    expect((await others.claim(hostname)).statusCode).toBe(201);
  });

  it('is refused beyond ten of a tracker, exactly, however many are claimed at once', async () => {
    const { claim, list, remove } = domainsOf(api, key, await makeTracker(api, key));
    const answers = await Promise.all(Array.from({ length: 25 }, () => claim(newName())));
    expect(answers.filter(({ statusCode }) => statusCode === 201)).toHaveLength(10);
    const refused = answers.filter((answer) => answer.statusCode === 429);
    expect(refused).toHaveLength(15);
    expect(refused[0]?.json().error.code).toBe('domain_limit');
    expect(refused[0]?.headers['retry-after']).toMatch(/^\d+$/);
    const [first] = await list();
    await remove(first?.id ?? '');
    expect((await claim(newName())).statusCode).toBe(201);
    expect(refusalOf(await claim(newName()))).toEqual([429, 'domain_limit']);
  });

  it('goes with its tracker, whose names are free then', async () => {
    const { tracker, hostname } = await activeDomain();
    await api.inject(key, { method: 'POST', url: `/v1/trackers/${tracker}/delete` });
    expect(refusalOf(await collect(api, tracker, { headers: { host: hostname } }))).toEqual([
      410,
      'tracker_deleted',
    ]);
    expect(refusalOf(await script(tracker, hostname))).toEqual([410, 'tracker_deleted']);
    const { claim } = domainsOf(api, key, await makeTracker(api, key));
    await eventually(
      'the name is free',
      () => claim(hostname),
      ({ statusCode }) => statusCode === 201,
    );
  });
});

describe('a host name that two partners claim', () => {
  const claimBy = async (hostname: string) => {
    const by = await api.key();
    const domains = domainsOf(api, by, await makeTracker(api, by));
    const answer = await domains.claim(hostname);
    return { by, domains, answer, id: answer.json().id as string };
  };
  const becomes = (domains: ReturnType<typeof domainsOf>, id: string, status: string, error: string | null) =>
    eventually(
      `it is ${status} with ${error}`,
      async () => {
        // Due at once, whenever the last check was.
        await api.runtime.pool.query(
          'update work.domain_look set due_at = looked_at where domain_id = $1 and looked_at < due_at',
          [id],
        );
        return domains.show(id);
      },
      (shown) => shown.status === status && shown.last_error === error,
    );

  it('shows each of them its TXT record, and is active for the partner that has made it', async () => {
    const hostname = newName();
    const [first, second] = [await claimBy(hostname), await claimBy(hostname)];
    expect([first.answer.statusCode, second.answer.statusCode]).toEqual([201, 201]);
    expect(first.answer.json().verification).toBeNull();
    const { verification } = second.answer.json();
    expect(verification).toEqual({
      type: 'TXT',
      name: `_doorplate.${hostname}`,
      value: expect.stringMatching(/^[\w-]{32}$/),
    });
    const shown = await eventually(
      'the claim of the other partner is seen',
      async () => (await first.domains.get(first.id)).json().verification,
      (one) => one !== null,
    );
    expect(shown.name).toBe(verification.name);
    expect(shown.value).not.toBe(verification.value);

    dns.says(hostname, [SERVICE_HOST]);
    await becomes(first.domains, first.id, 'pending', 'not_verified');
    await becomes(second.domains, second.id, 'pending', 'not_verified');
    dns.says(verification.name, { TXT: ['something else', verification.value] });
    const active = await becomes(second.domains, second.id, 'active', null);
    expect(active.snippet).not.toBeNull();
    expect((await second.domains.get(second.id)).json().verification).toBeNull();
    await becomes(first.domains, first.id, 'pending', 'not_verified');
  });

  it('is refused while it is active elsewhere, in words that name the record, and changes hands with it', async () => {
    const former = await activeDomain(await api.key());
    const { hostname } = former;
    const by = await api.key();
    const tracker = await makeTracker(api, by);
    const domains = domainsOf(api, by, tracker);
    const refused = await domains.claim(hostname);
    expect(refusalOf(refused)).toEqual([409, 'domain_taken']);
    const { message } = refused.json().error;
    expect(message).toContain(`_doorplate.${hostname}`);
    const value = /value ([\w-]{32})/.exec(message)?.[1] ?? '';
    dns.says(`_doorplate.${hostname}`, { TXT: [value] });
    const claimed = await domains.claim(hostname);
    expect([claimed.statusCode, claimed.json().verification.value]).toEqual([201, value]);
    await becomes(domains, claimed.json().id, 'active', null);
    expect(await former.domains.show(former.id)).toMatchObject({
      status: 'failed',
      last_error: 'claimed_elsewhere',
    });
    const collected = await collect(api, tracker, { headers: { host: hostname } });
    expect(collected.statusCode).toBe(204);
    expect(refusalOf(await former.domains.claim(hostname))).toEqual([409, 'domain_taken']);
  });

  it('does not go to the next claimant with a CNAME that was left behind', async () => {
    const former = await activeDomain(await api.key());
    await former.domains.remove(former.id);
    const next = await claimBy(former.hostname);
    expect(next.answer.json().verification).not.toBeNull();
    await becomes(next.domains, next.id, 'pending', 'not_verified');
    expect(refusalOf(await collect(api, former.tracker, { headers: { host: former.hostname } }))).toEqual([
      403,
      'untrusted_collector',
    ]);
  });
});

describe('the ceiling of a partner’s names', () => {
  const withCeiling = async (domains: number) => {
    const mine = await api.key();
    const { store } = api.runtime;
    const context = { correlationId: 'a test', causationId: 'a test', at: Date.now() };
    await setCeilings(store, { partner_id: mine.partner_id, ceilings: { domains } }, context);
    await api.caughtUp();
    return mine;
  };

  it('counts those of all trackers, and leaves out deleted ones', async () => {
    const mine = await withCeiling(2);
    const [one, other] = [
      domainsOf(api, mine, await makeTracker(api, mine)),
      domainsOf(api, mine, await makeTracker(api, mine)),
    ];
    const hostname = newName();
    const first = await one.claim(hostname);
    expect((await other.claim(newName())).statusCode).toBe(201);
    expect(refusalOf(await one.claim(newName()))).toEqual([429, 'domain_limit']);
    expect((await one.claim(hostname)).statusCode).toBe(201);
    await one.remove(first.json().id);
    expect((await other.claim(newName())).statusCode).toBe(201);
  });
});

describe('under the Host of a custom domain', () => {
  it('visits are collected and the script is served, for its tracker alone', async () => {
    const { tracker, hostname } = await activeDomain();
    const other = await makeTracker(api, key);
    for (const host of [hostname, hostname.toUpperCase(), `${hostname}:443`, `${hostname}.:8443`]) {
      const collected = await collect(api, tracker, { headers: { host } });
      expect(collected.statusCode).toBe(204);
      expect(collected.headers['access-control-allow-origin']).toBe(PAGE);
      expect((await script(tracker, host)).statusCode).toBe(200);
      expect(refusalOf(await collect(api, other, { headers: { host } }))).toEqual([
        403,
        'untrusted_collector',
      ]);
      expect(refusalOf(await script(other, host))).toEqual([403, 'untrusted_collector']);
    }
    await api.caughtUp();
    expect((await feed(api, key, `tracker_id=${tracker}`)).sessions).toHaveLength(4);
    const denied = await collect(api, tracker, {
      headers: { host: hostname, origin: 'https://evil.example' },
    });
    expect(refusalOf(denied)).toEqual([403, 'tracker_origin_denied']);
  });

  it('nothing is collected on any other name', async () => {
    const { tracker, hostname } = await activeDomain();
    for (const host of [
      `${hostname}..`,
      `${hostname}:a`,
      `a.${hostname}`,
      'example.com',
      '',
      'a b',
      '\u00ff',
    ]) {
      expect(refusalOf(await collect(api, tracker, { headers: { host } }))).toEqual([
        403,
        'untrusted_collector',
      ]);
      expect(refusalOf(await script(tracker, host))).toEqual([403, 'untrusted_collector']);
    }
  });

  it('nothing is collected while it is pending, nor once it is given up', async () => {
    const tracker = await makeTracker(api, key);
    const hostname = newName();
    const pending = domainsOf(api, key, tracker);
    await pending.claim(hostname);
    const headers = { host: hostname };
    expect(refusalOf(await collect(api, tracker, { headers }))).toEqual([403, 'untrusted_collector']);

    const active = await activeDomain();
    const at = { headers: { host: active.hostname } };
    expect((await collect(api, active.tracker, at)).statusCode).toBe(204);
    await active.domains.remove(active.id);
    expect(refusalOf(await collect(api, active.tracker, at))).toEqual([403, 'untrusted_collector']);
    expect(refusalOf(await script(active.tracker, active.hostname))).toEqual([403, 'untrusted_collector']);
  });

  it('there is nothing else', async () => {
    const { hostname } = await activeDomain();
    for (const url of ['/v1/trackers', '/v1/lookup?ip=8.8.8.8', '/docs', '/openapi.json', '/healthz', '/']) {
      const answer = await api.inject(key, { method: 'GET', url, headers: { host: hostname } });
      expect(refusalOf(answer), url).toEqual([404, 'not_found']);
      const other = await api.inject(key, { method: 'PUT', url, headers: { host: `${hostname}:443` } });
      expect(refusalOf(other), url).toEqual([404, 'not_found']);
      for (const host of [
        `${hostname}.`,
        `${hostname}:8443`,
        `${hostname}:000443`,
        `${hostname.toUpperCase()}.:443`,
      ]) {
        const same = await api.inject(key, { method: 'GET', url, headers: { host } });
        expect(refusalOf(same), `${host} ${url}`).toEqual([404, 'not_found']);
      }
      for (const host of [`${hostname}..`, `${hostname}:a`, `user@${hostname}`, `${hostname}/x`]) {
        const none = await api.inject(key, { method: 'GET', url, headers: { host } });
        expect(refusalOf(none), `${host} ${url}`).toEqual([400, 'invalid_body']);
      }
    }
    for (const host of [SERVICE_HOST, 'localhost', '10.0.0.1:3000', 'internal.example.com']) {
      const answer = await api.inject(null, { method: 'GET', url: '/healthz', headers: { host } });
      expect(answer.statusCode, host).toBe(200);
    }
  });
});

describe('GET /tls-allowed', () => {
  const startOps = (runtime: Parameters<typeof tlsAllowed>[0]) =>
    startOpsServer({
      host: '127.0.0.1',
      port: 0,
      registry: createMetrics().registry,
      readiness: () => ({ ready: true, problems: [] }),
      handlers: { 'GET /tls-allowed': tlsAllowed(runtime) },
      log: createLogger({ level: 'silent', destination: 'stderr' }),
    });

  it('says yes for the service’s own name and active domains, and asks no DNS', async () => {
    const { hostname, domains, id } = await activeDomain();
    const pending = newName();
    await domains.claim(pending);
    await eventually('the pending one was looked for', () => dns.questions.includes(`CNAME ${pending}`));
    const ops = await startOps(api.runtime);
    const ask = async (query: string) =>
      (await fetch(`http://127.0.0.1:${ops.port}/tls-allowed${query}`)).status;
    const asked = dns.questions.length;
    try {
      expect(await ask(`?domain=${hostname}`)).toBe(200);
      expect(await ask(`?domain=${hostname.toUpperCase()}`)).toBe(200);
      expect(await ask(`?domain=${SERVICE_HOST}`)).toBe(200);
      expect(await ask(`?domain=${FORMER_HOST}`)).toBe(200);
      for (const query of [
        '',
        '?domain=',
        `?domain=${pending}`,
        '?domain=unknown.example.com',
        `?domain=a.${hostname}`,
        `?domain=${hostname}.`,
        `?domain=${hostname}&domain=${hostname}`,
        '?domain=8.8.8.8',
        '?domain=%00',
      ]) {
        expect(await ask(query), query).toBe(404);
      }
      await domains.remove(id);
      expect(await ask(`?domain=${hostname}`)).toBe(404);
      const gone = await activeDomain();
      await api.inject(key, { method: 'POST', url: `/v1/trackers/${gone.tracker}/delete` });
      expect(await ask(`?domain=${gone.hostname}`)).toBe(404);
      expect(dns.questions.slice(asked).filter((question) => question.endsWith(hostname))).toEqual([]);
    } finally {
      await ops.close();
    }
  });
});

it('is refused where the service is reached by an address, which no CNAME can point at', async () => {
  const byAddress = await startApi({
    env: { PUBLIC_URL: 'http://127.0.0.1:3000', DNS_SERVERS: dns.address },
  });
  try {
    const by = await byAddress.key();
    const domains = domainsOf(byAddress, by, await makeTracker(byAddress, by));
    const refused = await domains.claim(newName());
    expect(refusalOf(refused)).toEqual([400, 'invalid_domain']);
    expect(refused.json().error.message).toContain('set PUBLIC_URL to a host name');
    expect(await domains.list()).toEqual([]);
  } finally {
    await byAddress.close();
  }
});
