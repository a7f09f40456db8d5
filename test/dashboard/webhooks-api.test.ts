import { createHmac, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { ownContext, toNewEvents } from '../../commands/handle.ts';
import { changePartner } from '../../commands/partners/manage-partner.ts';
import { DAY, HOUR, isoTime, MINUTE } from '../../domain/kernel/time.ts';
import { type DeliveryEvent, deliveryEvents } from '../../domain/webhooks/events.ts';
import { revealCompletedEvent, sessionCreatedEvent } from '../../read-api/webhooks/delivery-schemas.ts';
import { instantIn, localText } from '../../web/dashboard/pages/recoveries.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { type LoggedIn, loggedIn, makeUser } from '../support/dashboard.ts';
import { aDelivery, attempted, queued, type TestDelivery, type TestEndpoint } from '../support/deliveries.ts';
import { eventually } from '../support/eventually.ts';
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;
let receiver: Receiver;
let status = 204;
/** The only secret that the receiver knows; null: it verifies nothing. */
let verifiesBy: string | null = null;
let page: LoggedIn;
let endpoint: TestEndpoint;
/** The endpoint's first one. */
let secret: string;
beforeAll(async () => {
  receiver = await startReceiver({
    answer: (request, response) => {
      const isAccepted = verifiesBy === null || isSignedBy(verifiesBy, request);
      response.writeHead(isAccepted ? status : 401).end();
    },
  });
  api = await startApi({
    clock,
    env: {
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
      WEBHOOK_ALLOW_PORTS: String(receiver.port),
      WEBHOOK_MANAGEMENT_PER_MINUTE: '100000',
    },
  });
});
beforeEach(async () => {
  clock.advance(MINUTE);
  status = 204;
  verifiesBy = null;
  key = await api.key();
  page = await loggedIn(api, await makeUser(api, key.partner_id));
  endpoint = await newEndpoint();
});
afterAll(async () => {
  await api.close();
  await receiver.close();
});

const newEndpoint = async (): Promise<TestEndpoint> => {
  const payload = {
    name: 'receiver',
    url: `http://127.0.0.1:${receiver.port}/${randomUUID()}`,
    events: ['session.created'],
  };
  const made = await api.inject(key, { method: 'POST', url: '/v1/webhooks', payload });
  expect(made.statusCode, made.body).toBe(201);
  secret = made.json().signing_secret;
  return { webhook_id: made.json().id, partner_id: key.partner_id };
};
const isSignedBy = (whsec: string, { headers, body }: Received): boolean => {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const expected = createHmac('sha256', Buffer.from(whsec.slice('whsec_'.length), 'base64'));
  const signature = `v1,${expected.update(signed).digest('base64')}`;
  return String(headers['webhook-signature']).split(' ').includes(signature);
};
const append = async (...events: DeliveryEvent[]): Promise<void> => {
  const context = { correlationId: 'c', causationId: 'c', at: clock.now() };
  await api.runtime.store.append('deliveries-x', 'any', toNewEvents(deliveryEvents, events, context));
  await api.caughtUp();
};
const some = (count: number): TestDelivery[] => Array.from({ length: count }, () => aDelivery(endpoint));
/** The text of a page: tags removed, spaces joined. */
const textOf = async (path: string): Promise<string> => {
  const { body } = await page.get(path);
  return body
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll(/\s+/g, ' ');
};
const at = (path = ''): string => `/webhooks/${endpoint.webhook_id}${path}`;
const failing = (ds: readonly TestDelivery[], times = 1) =>
  ds.flatMap((d) => [
    queued(d, clock.now()),
    ...Array.from({ length: times }, (_, n) =>
      attempted(d, { attempt: n + 1, at: clock.now() + n, error: 'http_status' }),
    ),
  ]);

describe('the state of an endpoint', () => {
  it('is said in words on its page and in the list', async () => {
    for (const path of ['/webhooks', at()]) expect(await textOf(path)).toContain('No deliveries yet');
    const [d] = some(1) as [TestDelivery];
    await append(queued(d, clock.now()), attempted(d, { at: clock.now() }));
    for (const path of ['/webhooks', at()]) expect(await textOf(path)).toContain('Healthy');
    await append(...failing(some(1), 4));
    for (const path of ['/webhooks', at()]) {
      const text = await textOf(path);
      expect(text).toMatch(/Failing The last 4 attempts failed, HTTP 500; next try in 1 minute/);
    }
    await append(...failing(some(6)));
    const home = await textOf('');
    expect(home).toContain('Deliveries to “receiver” are held back: 10 failures in a row, HTTP 500.');
    const held =
      /Held back Since \d+ Mar 2026, \d\d:\d\d UTC : 10 failures in a row, HTTP 500; next try (in \d+ (seconds|minute)|at any moment)/;
    for (const path of ['/webhooks', at()]) expect(await textOf(path)).toMatch(held);
    await api.inject(key, {
      method: 'PATCH',
      url: `/v1/webhooks/${endpoint.webhook_id}`,
      payload: { enabled: false },
    });
    expect(await textOf('/webhooks')).toMatch(/Paused Since \d+ Mar 2026/);
    await api.inject(key, { method: 'DELETE', url: `/v1/webhooks/${endpoint.webhook_id}` });
    expect(await textOf(at())).toMatch(/Deleted Since \d+ Mar 2026/);
  });

  it('is suspended, with no next attempt, while the partner is', async () => {
    const [one] = some(1) as [TestDelivery];
    await append(
      queued(one, clock.now()),
      attempted(one, { at: clock.now() }),
      queued(aDelivery(endpoint), clock.now()),
    );
    expect(await textOf('/webhooks')).toContain('Healthy');
    await changePartner(api.runtime.store, 'SuspendPartner', key.partner_id, ownContext(clock));
    await api.caughtUp();
    clock.advance(HOUR);
    page = await loggedIn(api, await makeUser(api, key.partner_id));
    for (const path of ['/webhooks', at()]) {
      const text = await textOf(path);
      expect(text).toMatch(/Suspended Since \d+ Mar 2026, \d\d:\d\d UTC : the account is suspended/);
      expect(text).not.toMatch(/Healthy|at any moment/);
    }
    const history = await textOf(at('/deliveries'));
    expect(history).toContain('waiting: suspended');
    expect(history).toContain('Pending deliveries wait until the operator resumes the account.');
    expect(history).not.toContain('at any moment');
  });

  it('comes with its success rate and response time, as figures and lines', async () => {
    const ds = some(4);
    const now = clock.now();
    await append(
      ...ds.slice(0, 3).flatMap((d) => [queued(d, now), attempted(d, { at: now })]),
      ...ds.slice(3).flatMap((d) => [queued(d, now), attempted(d, { at: now, error: 'timeout' })]),
    );
    const text = await textOf(at());
    expect(text).toContain('Success rate 75 %');
    expect(text).toContain('Attempts that succeeded 3 of 4');
    expect(text).toContain('Average response 100 ms');
    clock.advance(2 * DAY);
    page = await loggedIn(api, await makeUser(api, key.partner_id));
    expect(await textOf(at())).toContain('No attempts in the last 24 hours');
    expect(await textOf(at('?span=week'))).toContain('Success rate 75 %');
  });
});

describe('the deliveries of an endpoint', () => {
  it('never show a next attempt in the past while the endpoint is held back', async () => {
    await append(...failing(some(10)), queued(aDelivery(endpoint), clock.now()));
    clock.advance(3 * HOUR);
    page = await loggedIn(api, await makeUser(api, key.partner_id));
    const text = await textOf(at('/deliveries'));
    expect(text).toContain('waiting: held back');
    expect(text).toMatch(/when the endpoint answers again; next probe (at any moment|in \d+ seconds)/);
    expect(text).not.toMatch(/next probe [^.]{0,12} ago/);
  });

  it('are filtered by state, event, day and id, which stay in the address', async () => {
    const now = clock.now();
    const [old, young] = some(2) as [TestDelivery, TestDelivery];
    await append(
      ...[queued(old, now - 3 * DAY), attempted(old, { at: now - 3 * DAY })],
      ...[queued(young, now), attempted(young, { at: now, error: 'dns', final: true })],
    );
    const ids = async (query: string): Promise<string[]> => {
      const { body } = await page.get(at(`/deliveries${query}`));
      return [old, young].filter(({ delivery_id }) => body.includes(delivery_id)).map((d) => d.delivery_id);
    };
    const day = (before: number) => isoTime(now - before * DAY).slice(0, 10);
    expect(await ids('')).toEqual([old.delivery_id, young.delivery_id]);
    expect(await ids('?status=failed')).toEqual([young.delivery_id]);
    expect(await ids('?type=webhook.test')).toEqual([]);
    expect(await ids('?type=session.created&status=delivered')).toEqual([old.delivery_id]);
    expect(await ids(`?since=${day(1)}`)).toEqual([young.delivery_id]);
    expect(await ids(`?since=${day(3)}&until=${day(3)}`)).toEqual([old.delivery_id]);
    expect(await ids(`?id=${old.delivery_id}`)).toEqual([old.delivery_id]);
    expect(await ids(`?id=${randomUUID()}`)).toEqual([]);
    const { body } = await page.get(at(`/deliveries?status=failed&since=${day(1)}`));
    expect(body).toContain('status=failed" aria-current="true"');
    expect(body).toContain(`name="since" type="date" value="${day(1)}"`);
    const none = await textOf(at('/deliveries?type=webhook.test'));
    expect(none).toContain('No deliveries match');
    expect(none).toContain('Clear the filters');
    expect(none).not.toContain('Send a test');
    const { delivery_id, event_id } = (
      await api.inject(key, { method: 'POST', url: `/v1${at('/test')}` })
    ).json();
    expect((await page.get(at(`/deliveries?id=${event_id}`))).body).toContain(delivery_id);
  });

  it.each([
    'before=2026-11-27T00:00:00.000Z,9999999999999999999',
    'before=2026-02-31T00:00:00.000Z,1',
    'before=0000-01-01T00:00:00.000Z,1',
    'since=0000-01-01',
    'until=9999-12-31',
    'id=a%00b',
    'since=%00&until=%00&status=%00&type=%00&before=%00',
  ])('are listed whatever the address holds: %s', async (query) => {
    expect((await page.get(at(`/deliveries?${query}`))).statusCode).toBe(200);
  });

  it('say which filter is not a day, keep it and find nothing', async () => {
    const [d] = some(1) as [TestDelivery];
    await append(queued(d, clock.now()));
    const { body } = await page.get(at('/deliveries?since=2026-02-31&until=x'));
    expect(body).toContain('“2026-02-31” is not a day, so nothing is found.');
    expect(body).toContain('“x” is not a day, so nothing is found.');
    expect(body).toMatch(/name="until"[^>]*value="x"[^>]*aria-invalid="true"/);
    expect(body).not.toContain(d.delivery_id);
    for (const query of ['status=lost', 'type=session.lost']) {
      const wrong = (await page.get(at(`/deliveries?${query}`))).body;
      expect(wrong).toContain('is none of these, so nothing is found.');
      expect(wrong).not.toContain(d.delivery_id);
    }
    expect(await textOf(at('/deliveries?since=2026-02-28'))).not.toContain('is not a day');
  });

  it('are told apart by the end of their event ids', async () => {
    const [d] = some(1) as [TestDelivery];
    await append(queued(d, clock.now()));
    expect(await textOf(at('/deliveries'))).toContain(`…${d.event_id.slice(-8)}`);
  });

  it('say below the state when the next attempt is, and beside the last one how it ended', async () => {
    await append(...failing(some(1)));
    expect(await textOf(at('/deliveries'))).toMatch(
      /pending next attempt (at any moment|in .{1,20}) 1 (now|.{1,20} ago) HTTP 500/,
    );
  });

  it('say how many there are, and go on page by page without a gap', async () => {
    const ds = some(120);
    await append(
      ...ds.flatMap((d, n) => [queued(d, clock.now() - (n % 7)), attempted(d, { at: clock.now() })]),
    );
    const seen: string[] = [];
    let path = at('/deliveries?status=delivered');
    expect(await textOf(path)).toContain('50 of 120 deliveries.');
    for (let next: string | undefined = path; next !== undefined; ) {
      const { body } = await page.get(path);
      seen.push(...[...body.matchAll(/deliveries\/([0-9a-f-]{36})[?"]/g)].map(([, id]) => id as string));
      next = /href="\/dashboard([^"]*before=[^"]*)"/.exec(body)?.[1]?.replaceAll('&amp;', '&');
      if (next !== undefined) {
        expect(next).toContain('status=delivered');
        path = next;
      }
    }
    expect(new Set(seen)).toEqual(new Set(ds.map(({ delivery_id }) => delivery_id)));
    expect(seen).toHaveLength(120);
    expect(await textOf(at('/deliveries?type=session.created'))).toContain('50 deliveries, and more.');
  });
});

describe('a delivery', () => {
  it('shows its attempts, what failed, what to do, and what is sent', async () => {
    const [d] = some(1) as [TestDelivery];
    const now = clock.now();
    await append(
      queued(d, now),
      attempted(d, { at: now + 1_000, error: 'tls' }),
      attempted(d, { attempt: 2, at: now + 5_000, error: 'http_status', final: true }),
    );
    const text = await textOf(at(`/deliveries/${d.delivery_id}`));
    expect(text).toMatch(
      /2 \d+ Mar 2026, \d\d:\d\d UTC 100 ms failed HTTP 500 1 \d+ Mar 2026, \d\d:\d\d UTC 100 ms failed TLS error/,
    );
    expect(text).toContain('The last attempt failed: HTTP 500. See the log of your server');
    expect(text).toContain(`webhook-id: ${d.event_id}`);
    expect(text).toContain(`webhook-timestamp: ${Math.floor((now + 4_900) / 1_000)}`);
    expect(text).toContain('Retry');
    // The filters of the list are kept on the way there and back.
    const filtered = await page.get(at(`/deliveries/${d.delivery_id}?status=failed`));
    expect(filtered.body).toContain(`href="/dashboard${at('/deliveries')}?status=failed">Back to the list`);
    expect(filtered.body).toContain(`/${d.delivery_id}/retry?status=failed"`);
  });

  it.each(['timeout', 'dns', 'connect', 'tls', 'blocked_address', 'redirect', 'own_origin'] as const)(
    'says what to do about %s',
    async (error) => {
      const [d] = some(1) as [TestDelivery];
      await append(queued(d, clock.now()), attempted(d, { at: clock.now(), error, final: true }));
      expect(await textOf(at(`/deliveries/${d.delivery_id}`))).toMatch(
        /The last attempt failed: [^.]+\. [A-Z][^.]+\./,
      );
    },
  );
});

describe('samples', () => {
  test.each([
    ['session.created', sessionCreatedEvent],
    ['reveal.completed', revealCompletedEvent],
  ] as const)(
    'of %s are sent to one endpoint, with made-up data under the id of a test',
    async (type, schema) => {
      const other = await newEndpoint();
      const sent = await page.send(at('/test'), { type });
      expect([sent.statusCode, sent.headers.location]).toEqual([
        303,
        `/dashboard/webhooks/${endpoint.webhook_id}/deliveries`,
      ]);
      const delivered = await eventually(
        'it is delivered',
        async () =>
          (await api.inject(key, { method: 'GET', url: `/v1${at('/deliveries')}` })).json().deliveries[0],
        (delivery) => delivery?.state === 'delivered',
      );
      expect(delivered).toMatchObject({ type, event_id: expect.stringMatching(/^evt_test_/) });
      const body = receiver.requests.findLast(
        ({ headers }) => headers['webhook-id'] === delivered.event_id,
      )?.body;
      const event = schema.parse(JSON.parse(body?.toString() ?? ''));
      expect(JSON.stringify(event)).toContain('ample');
      if (event.type === 'reveal.completed')
        expect(event.data).toMatchObject({ billable: false, billable_units: 0 });
      const theirs = await api.inject(key, {
        method: 'GET',
        url: `/v1/webhooks/${other.webhook_id}/deliveries`,
      });
      expect(theirs.json().deliveries).toEqual([]);
    },
  );
});

describe('a retry after an outage', () => {
  it('refuses times that are none, and finds nothing to retry of a healthy endpoint', async () => {
    expect((await page.send(at('/deliveries/retry'), { since: 'yesterday' })).statusCode).toBe(400);
    expect((await page.get(at('/recover?since=2020-01-01'))).statusCode).toBe(400);
    expect(await textOf(at(`/recover?since=${isoTime(clock.now() - HOUR)}`))).toContain('Nothing to retry');
  });

  it.each([
    ['UTC', '2026-03-14T10:05', '2026-03-14T10:05:00.000Z'],
    ['Europe/Berlin', '2026-03-14T10:05', '2026-03-14T09:05:00.000Z'],
    ['Europe/Berlin', '2026-03-29T03:30', '2026-03-29T01:30:00.000Z'],
    ['America/New_York', '2026-03-08T01:30', '2026-03-08T06:30:00.000Z'],
    ['Africa/Cairo', '2026-10-29T23:30', '2026-10-29T20:30:00.000Z'],
    ['America/Havana', '2026-11-01T00:30', '2026-11-01T04:30:00.000Z'],
    ['Europe/Berlin', '2026-10-25T02:30', '2026-10-25T00:30:00.000Z'],
    ['Europe/Berlin', '2026-03-29T02:30', '2026-03-29T01:30:00.000Z'],
    ['Asia/Kolkata', '2026-03-14T00:00', '2026-03-13T18:30:00.000Z'],
    ['Asia/Kolkata', '2026-03-14', '2026-03-14T00:00:00.000Z'],
    ['Asia/Kolkata', '2026-03-14T10:05:00.000Z', '2026-03-14T10:05:00.000Z'],
    ['UTC', '2026-13-14T10:05', null],
    ['UTC', '2026-02-31T10:05', null],
    ['UTC', '2026-02-31T10:05:00.000Z', null],
    ['UTC', '', null],
  ])('reads a time in %s: %s', (zone, text, instant) => {
    expect(instantIn(zone, text)).toBe(instant);
  });

  it('reads each time back as it shows it, in a repeated hour the earlier one', () => {
    for (const zone of ['Africa/Cairo', 'America/Havana', 'Europe/Berlin', 'Australia/Lord_Howe']) {
      for (let hour = 0; hour < 20 * 24; hour += 0.5) {
        const at = Date.UTC(2026, 9, 20) + hour * HOUR;
        const read = Date.parse(instantIn(zone, localText(zone, at)) ?? '');
        expect(localText(zone, read)).toBe(localText(zone, at));
        expect(read).toBeLessThanOrEqual(at);
      }
    }
  });
});

describe('the rotation of a secret', () => {
  it('walks through both secrets, and shows the new one once', async () => {
    const question = await textOf(at('/rotate'));
    expect(question).toContain('For 24 hours the present one signs as well');
    expect(question).toContain('If you lose it, you have to wait 24 hours for another');
    const rotated = await page.send(at('/rotate'));
    expect(rotated.body).toMatch(/whsec_[A-Za-z0-9+/=]{44}/);
    expect(rotated.body).toContain('This is shown once.');
    const primary = /<a class="button"[^>]*>([^<]*)<|<button(?! class="quiet)[^>]*>([^<]*)</g;
    const main = rotated.body.slice(rotated.body.indexOf('<main'));
    expect([...main.matchAll(primary)].map(([, link, button]) => link ?? button)).toEqual([
      'Done: to the endpoint',
    ]);
    const later = await page.get(at('/rotate'));
    expect(later.body).not.toMatch(/whsec_[A-Za-z0-9+/]{43}=/);
    expect(await textOf(at('/rotate'))).toContain('None was sent since the rotation began');
    expect(await textOf(at())).toContain('Two secrets sign until');
    const sent = await page.send(at('/test'), { from: 'rotation' });
    expect(sent.headers.location).toBe(`/dashboard/webhooks/${endpoint.webhook_id}/rotate`);
    await eventually(
      'the test was accepted',
      () => textOf(at('/rotate')),
      (text) => text.includes('was accepted with the new secret'),
    );
    clock.advance(DAY);
    page = await loggedIn(api, await makeUser(api, key.partner_id));
    expect(await textOf(at('/rotate'))).toContain('Rotate the secret of');
    expect(await textOf(at())).toContain('One secret signs');
  });
});

describe('the test of a rotation', () => {
  const shows = (wanted: string) =>
    eventually(
      `the page says “${wanted}”`,
      () => textOf(at('/rotate')),
      (text) => text.includes(wanted),
    );

  it('is not accepted by a receiver that knows the old secret alone, and delays no other delivery', async () => {
    verifiesBy = secret;
    const rotated = (await page.send(at('/rotate'))).body;
    await page.send(at('/test'), { from: 'rotation' });
    await shows('was not accepted: HTTP 401');
    expect(await textOf(at())).not.toContain('Failing');
    verifiesBy = /whsec_[A-Za-z0-9+/=]{44}/.exec(rotated)?.[0] ?? '';
    await page.send(at('/test'), { from: 'rotation' });
    await shows('was accepted with the new secret');
  });

  it('shows nothing of the new secret where both signed it', async () => {
    verifiesBy = secret;
    await page.send(at('/rotate'));
    await page.send(at('/test'));
    await shows('was signed by both secrets and accepted');
  });

  it('blames no secret where a test that both signed was not accepted', async () => {
    await page.send(at('/rotate'));
    verifiesBy = 'whsec_AAAA';
    await page.send(at('/test'));
    await shows('was not accepted: HTTP 401');
    const text = await textOf(at('/rotate'));
    expect(text).toContain('It was not signed by the new secret alone');
    expect(text).not.toContain('Put that on your servers');
  });

  it('asks whether the new secret is kept before it leaves the page that shows it', async () => {
    const rotated = (await page.send(at('/rotate'))).body;
    expect(rotated).toMatch(/<input type="checkbox" name="kept" value="yes"\s+required>/);
    expect((await page.get(at('/rotate'))).body).not.toContain('name="kept"');
  });
});

it("hides another partner's endpoint on each of its pages", async () => {
  const stranger = await loggedIn(api, await makeUser(api, (await api.key()).partner_id));
  for (const path of ['', '/deliveries', '/recover', '/rotate', '/delete', `/recoveries/${randomUUID()}`])
    expect((await stranger.get(at(path))).statusCode, path).toBe(404);
  for (const path of ['/test', '/deliveries/retry', '/rotate', '/pause', '/delete'])
    expect(
      (await stranger.send(at(path), { since: isoTime(clock.now()), type: 'session.created' })).statusCode,
      path,
    ).toBe(404);
});
