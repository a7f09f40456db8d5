import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endDeletedPartners } from '../../bin/retention.ts';
import { ownContext } from '../../commands/handle.ts';
import { changePartner, revokeKey } from '../../commands/partners/manage-partner.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import { type EventStore, StoreUnavailable } from '../../event-store/port.ts';
import { domains } from '../../projections/domains/domains.ts';
import { partners } from '../../projections/partners/keys.ts';
import { team } from '../../projections/partners/team.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { reveals } from '../../projections/reveals/reveals.ts';
import { sessions } from '../../projections/sessions/sessions.ts';
import { trackers } from '../../projections/trackers/trackers.ts';
import { trackerUsage } from '../../projections/usage/tracker-usage.ts';
import { deliveries } from '../../projections/webhooks/deliveries/projection.ts';
import { endpoints } from '../../projections/webhooks/endpoints/projection.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { browse, type LoggedIn, loggedIn, makeUser } from '../support/dashboard.ts';
import { doorplateHere, MASTER_KEY } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { codeOf, collect, feed, makeTracker, PAGE } from '../support/tracking.ts';
import { type AllowedReceivers, allowReceivers } from '../support/webhook-sink.ts';

const VISITOR = '5.9.0.1';
// The command has the system's.
const clock = manualClock(Date.now());
const provider = scriptedProvider();
let isDown = true;
let receiver: Receiver;
let allowed: AllowedReceivers;
let api: TestApi;
let key: Key;
let tracker: string;
let session: string;
let owner: LoggedIn;
/** The store that the service's wraps. */
let inner: EventStore;
/** Whether the service's own run, which begins every quarter of a minute, cannot take a partner apart. */
let isHeld = false;
const TAKES_APART = /^(trackers|user|partner|expired|reveal|payload|tab)-/;

const heldStore = (store: EventStore): EventStore => {
  inner = store;
  const refuseHeld = (stream: string): void => {
    if (isHeld && TAKES_APART.test(stream)) throw new StoreUnavailable('held by the test');
  };
  return {
    ...store,
    append: async (stream, ...rest) => {
      refuseHeld(stream);
      return store.append(stream, ...rest);
    },
    expire: async (stream, ...rest) => {
      refuseHeld(stream);
      return store.expire(stream, ...rest);
    },
  };
};

const ports = async () => {
  const probe = await startReceiver();
  await probe.close();
  return probe.port;
};

beforeAll(async () => {
  const port = await ports();
  allowed = await allowReceivers([port]);
  receiver = await startReceiver({
    tls: allowed.tls,
    port,
    answer: (_request, response) => void response.writeHead(isDown ? 503 : 204).end(),
  });
  api = await startApi({ clock, providers: [provider], env: allowed.env, aroundStore: heldStore });
  provider.says(VISITOR, 'fails');
  key = await api.key();
  tracker = await makeTracker(api, key);
  await endpoint(key, 'suspended');
  owner = await loggedIn(api, await makeUser(api, key.partner_id));
  await collect(api, tracker, { ip: VISITOR });
  session = (await feed(api, key)).sessions.at(-1)?.session_id as string;
  await eventually(
    'the delivery has failed once',
    () => attempts('session.created'),
    (n) => n === 1,
  );
});
afterAll(async () => {
  await api.close();
  await receiver.close();
  allowed.remove();
});

const endpoint = async (of: Key, path: string) => {
  const payload = {
    name: path,
    url: `https://127.0.0.1:${receiver.port}/${path}`,
    events: ['session.created', 'reveal.completed'],
  };
  const made = await api.inject(of, { method: 'POST', url: '/v1/webhooks', payload });
  expect(made.statusCode, made.body).toBe(201);
};
const attempts = async (type: string, partner = key.partner_id): Promise<number> => {
  const { rows } = await api.sql.query(
    'select attempts from read.webhook_delivery where partner_id = $1 and type = $2',
    [partner, type],
  );
  return rows[0]?.attempts ?? 0;
};
const sent = () => receiver.requests.filter(({ path }) => path === '/suspended').length;
const units = async () =>
  (
    await api.sql.query('select units from read.reveal_unit where partner_id = $1', [key.partner_id])
  ).rows.map(({ units }) => units);
const command = (...args: string[]) => {
  const { DATABASE_URL, DATA_DIR } = api.runtime.config;
  const env = { DATABASE_URL: DATABASE_URL ?? '', DATA_DIR, MASTER_KEY, LOG_LEVEL: 'silent' };
  return doorplateHere([...args, '--json'], env);
};
const partner = async (...args: string[]) => {
  const ended = await command('partner', ...args);
  expect(ended.code, ended.stderr).toBe(0);
  return JSON.parse(ended.stdout);
};
const reveal = async (of: string): Promise<{ reveal_id: string; status: string }> =>
  (
    await api.inject(key, {
      method: 'POST',
      url: `/v1/sessions/${of}/reveal`,
      headers: { 'idempotency-key': randomUUID() },
    })
  ).json();
const preflight = () =>
  api.app.inject({
    method: 'OPTIONS',
    url: '/tracking/collect',
    headers: { host: 'doorplate.test', origin: PAGE, 'access-control-request-method': 'POST' },
  });
const masked = (text: string) => text.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '');

describe('a suspended partner', () => {
  let revealId: string;
  let asked: number;

  beforeAll(async () => {
    const pending = await reveal(session);
    expect(pending).toMatchObject({ status: 'pending' });
    revealId = pending.reveal_id;
    await eventually('the provider has failed', () => provider.asked(VISITOR));
    const suspended = { partner_id: key.partner_id, state: 'suspended' };
    expect(await partner('suspend', key.partner_id)).toMatchObject(suspended);
    expect(await partner('suspend', key.partner_id)).toMatchObject(suspended);
    await api.caughtUp();
    asked = sent();
    isDown = false;
  });

  it('has its keys refused as revoked ones are, within a second', async () => {
    const revoked = await api.key();
    await revokeKey(api.runtime.store, revoked, ownContext(clock));
    const [one, other] = await Promise.all(
      [key, revoked].map((of) =>
        eventually(
          'the key is refused',
          () => api.get(of, '8.8.8.8'),
          (answer) => answer.statusCode === 401,
          1_000,
        ),
      ),
    );
    expect(masked(one?.body ?? '')).toBe(masked(other?.body ?? 'other'));
    expect(Object.keys(one?.headers ?? {})).toEqual(Object.keys(other?.headers ?? {}));
  });

  it('has its pixels refused as those of a disabled tracker, within a second', async () => {
    // A visit that comes before would be one more session.
    await eventually(
      'the pixel is refused',
      preflight,
      ({ headers }) => headers['access-control-allow-origin'] === undefined,
      1_000,
    );
    const refused = await collect(api, tracker);
    expect([refused.statusCode, codeOf(refused)]).toEqual([403, 'tracker_origin_denied']);
  });

  it('gets no delivery and no completed reveal, and has no unit', async () => {
    provider.says(VISITOR, aCompany('Acme'));
    const other = await api.key();
    await endpoint(other, 'active');
    const site = await makeTracker(api, other, { origins: ['https://other.example'] });
    clock.advance(10 * MINUTE);
    await collect(api, site, { ip: VISITOR, headers: { origin: 'https://other.example' } });
    // Both are due, and the runs that complete reveals have passed the result.
    await eventually('the other partner’s delivery', () => attempts('session.created', other.partner_id));
    await eventually('the result is there', async () => (await ready()).length === 1);
    const page = await owner.get(`/reveals/${revealId}`);
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain('pending');
    expect(await units()).toEqual([]);
    expect(sent()).toBe(asked);
  });

  it('has users who read everything, and change and reveal nothing', async () => {
    for (const path of ['', '/sessions', '/keys', '/webhooks', '/team', '/account', '/activity']) {
      const page = await owner.get(path);
      expect([path, page.statusCode]).toEqual([path, 200]);
      expect(page.body).toContain('This account is suspended.');
    }
    expect((await owner.get('/activity.csv')).statusCode).toBe(200);
    expect((await owner.get('/activity')).body).toContain('Account suspended');
    for (const path of ['/keys', '/trackers', '/webhooks', `/sessions/${session}/reveal`, '/lookup']) {
      const refused = await owner.send(path, { name: 'k' });
      expect([path, refused.statusCode]).toEqual([path, 403]);
      expect(refused.body).toContain('Ask the operator');
    }
    expect((await owner.send('/account/time-zone', { time_zone: 'Europe/Zurich' })).statusCode).toBe(303);
    const { cookie } = owner;
    expect((await browse(api, 'GET', '/dashboard/billing', { cookie })).statusCode).toBe(200);
  });

  it('is listed with its state and its use of the month', async () => {
    const listed = await partner('list');
    expect(listed.find((one: { partner_id: string }) => one.partner_id === key.partner_id)).toMatchObject({
      state: 'suspended',
      keys: 100,
      live_keys: 1,
      trackers: 1,
      captures: 1,
      sessions: 1,
      units: 0,
    });
  });

  it('has everything again once it is resumed, each delivery and unit once', async () => {
    expect(await partner('resume', key.partner_id)).toMatchObject({ state: 'active' });
    await eventually(
      'the delivery',
      () => attempts('session.created'),
      (n) => n === 2,
    );
    await eventually(
      'the reveal’s delivery',
      () => attempts('reveal.completed'),
      (n) => n === 1,
    );
    expect(sent()).toBe(asked + 2);
    expect(await units()).toEqual([1]);
    await eventually(
      'the key is taken',
      () => api.get(key, VISITOR),
      (answer) => answer.statusCode === 200,
    );
    await eventually(
      'the pixel is taken',
      () => collect(api, tracker),
      (answer) => answer.statusCode === 204,
    );
    expect((await owner.get('')).body).not.toContain('This account is suspended.');
    expect((await preflight()).headers['access-control-allow-origin']).toBe(PAGE);
  });

  const ready = async () =>
    (await api.sql.query('select from work.awaited_result where reveal_id = $1 and ready', [revealId])).rows;
});

describe('a deleted partner', () => {
  const HOSTNAME = 'visits.customer.example';
  const UNKNOWN_VISITOR = '5.9.0.2';
  let name: string;
  let userName: string;
  let pending: string;

  /** A store that fails from its nth change on, as for a process that is killed there. */
  const killedAfter = (changes: number): EventStore => {
    const store = inner;
    let left = changes;
    const spend = (): void => {
      left -= 1;
      if (left < 0) throw new Error('killed');
    };
    return {
      ...store,
      append: async (...args) => {
        spend();
        return store.append(...args);
      },
      expire: async (...args) => {
        spend();
        return store.expire(...args);
      },
    };
  };
  const { signal } = new AbortController();
  const end = (store: EventStore) => endDeletedPartners({ ...api.runtime, store }, signal);
  const countOf = async (table: string): Promise<number> =>
    (await api.sql.query(`select from ${table} where partner_id = $1`, [key.partner_id])).rowCount ?? 0;

  const isEnded = async (): Promise<boolean> => {
    const text = 'select ended_at is not null as ended from read.partner where partner_id = $1';
    return (await api.sql.query(text, [key.partner_id])).rows[0].ended;
  };

  beforeAll(async () => {
    const user = await makeUser(api, key.partner_id);
    userName = user.name;
    provider.says(UNKNOWN_VISITOR, 'fails');
    await collect(api, tracker, { ip: UNKNOWN_VISITOR });
    const sessions = (await feed(api, key)).sessions;
    const { reveal_id, status } = await reveal(sessions.at(-1)?.session_id as string);
    expect(status).toBe('pending');
    pending = reveal_id;
    const claimed = await api.inject(key, {
      method: 'POST',
      url: `/v1/trackers/${tracker}/domains`,
      payload: { hostname: HOSTNAME },
    });
    expect(claimed.statusCode, claimed.body).toBe(201);
    name = (await api.sql.query('select name from read.partner where partner_id = $1', [key.partner_id]))
      .rows[0].name;
  });

  it('is deleted by a command that wants its name typed, or --yes', async () => {
    const asked = await command('partner', 'delete', name);
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('--yes')]);
    const { partner_id } = await partner('create', 'brief');
    const deleted = { partner_id, name: 'brief', state: 'deleted' };
    expect(await partner('delete', 'brief', '--yes')).toEqual(deleted);
    expect((await partner('create', 'brief')).partner_id).not.toBe(partner_id);
    isHeld = true;
    await changePartner(inner, 'DeletePartner', key.partner_id, ownContext(clock));
  });

  it('has its keys, its pixels and its users refused at once, and its name free', async () => {
    await eventually(
      'the key is refused',
      () => api.get(key, VISITOR),
      ({ statusCode }) => statusCode === 401,
      1_000,
    );
    await eventually(
      'the pixel is refused',
      () => collect(api, tracker),
      ({ statusCode }) => statusCode >= 403,
      1_000,
    );
    expect((await owner.get('')).statusCode).toBe(303);
    expect((await command('partner', 'resume', key.partner_id)).code).toBe(1);
    expect((await partner('create', name)).partner_id).not.toBe(key.partner_id);
    expect((await command('partner', 'create', name)).stderr).toContain('partner_exists');
  });

  it('is taken apart to the end, wherever a run is cut short', async () => {
    let killed = 0;
    const isCutShort = (changes: number) =>
      end(killedAfter(changes)).then(
        () => false,
        () => true,
      );
    while (await isCutShort(1 + 2 * killed)) killed += 1;
    isHeld = false;
    expect(killed).toBeGreaterThan(2);
    await eventually('nothing is left', async () => {
      const tables = ['session', 'reveal', 'domain', 'team_member', 'user_account'];
      const counts = await Promise.all(tables.map((table) => countOf(`read.${table}`)));
      return counts.every((count) => count === 0);
    });
    clock.advance(2 * MINUTE);
    // The service's own run may be under way.
    await eventually('the end is recorded', () => end(api.runtime.store).then(isEnded, () => false));
    await api.caughtUp();
    const listed = await partner('list');
    expect(listed.map(({ partner_id }: { partner_id: string }) => partner_id)).not.toContain(key.partner_id);
    expect(await partner('delete', key.partner_id, '--yes')).toMatchObject({ state: 'ended' });
  });

  it('leaves its ledger, in which an audit finds no difference, and ids that have expired', async () => {
    const audited = await command('audit', 'billing', '--partner', key.partner_id);
    expect([audited.code, audited.stdout]).toEqual([0, expect.stringContaining('"differences":[]')]);
    expect(await units()).toEqual([1]);
    const { rows } = await api.sql.query('select from read.expired_reveal where reveal_id = $1', [pending]);
    expect(rows).toHaveLength(1);
  });

  it('is the same after a rebuild', async () => {
    const projections = [
      partners,
      team,
      trackers,
      sessions,
      reveals,
      trackerUsage,
      endpoints,
      deliveries,
      domains,
    ];
    const tables = projections.flatMap((one) => one.tables);
    const rows = async () =>
      Object.fromEntries(
        await Promise.all(
          tables.map(async (table) => {
            const found = await api.sql.query(
              `select to_jsonb(t) as row from read.${table} t where to_jsonb(t) -> 'deliveries' is distinct from '0' order by t::text`,
            );
            return [table, found.rows] as const;
          }),
        ),
      );
    await api.caughtUp();
    const before = await rows();
    await rebuild({ store: api.runtime.store, url: api.runtime.databaseUrl, projections });
    expect(await rows()).toEqual(before);
  });

  it('frees the names of its users and its domains for others', async () => {
    const other = await api.key();
    await makeUser(api, other.partner_id, { name: userName });
    const site = await makeTracker(api, other);
    const payload = { hostname: HOSTNAME };
    const claimed = await api.inject(other, { method: 'POST', url: `/v1/trackers/${site}/domains`, payload });
    expect(claimed.statusCode, claimed.body).toBe(201);
  });
});
