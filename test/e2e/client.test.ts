import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../cli/installation/free-port.ts';
import { eventually } from '../support/eventually.ts';
import type { ProgramRun } from '../support/packed-client.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { CLOUDFLARE, failureOf, GOOGLE, type Partner, QUAD9, startPartner } from './partner.ts';

let partner: Partner;
/** The output of the compilers. */
let said: string;
/** Concurrent, because it waits for as long as the service asks. */
let lookingUp: ProgramRun;
let receiverPort: number;

beforeAll(async () => {
  receiverPort = await freePort();
  partner = await startPartner({
    WEBHOOK_ALLOW_HTTP: '1',
    WEBHOOK_ALLOW_NETWORKS: '127.0.0.1/32',
    WEBHOOK_ALLOW_PORTS: String(receiverPort),
  });
  said = await partner.project.compile();
  lookingUp = partner.run('lookup', [GOOGLE]);
}, 90_000);
afterAll(() => partner?.remove());

describe('the packed client', () => {
  it('contains what a partner needs and installs without a registry or dependencies', () => {
    const { files, installed } = partner.project;
    const expected = ['LICENSE', 'README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts'];
    expect(files).toEqual(expect.arrayContaining(expected));
    const others = files.filter((file) => !/^(dist|examples)\//.test(file) && !expected.includes(file));
    expect(others).toEqual([]);
    expect(installed).toEqual(['doorplate-client']);
  });

  it('has types that accept the examples and the README, with an old and a new compiler', () => {
    expect(said).toBe('');
  });
});

describe('a lookup by the client', () => {
  it('of a new address polls to its result, and of a saved one does not wait', async () => {
    const { client, waits } = partner;
    waits.length = 0;
    const found = await client().lookup(CLOUDFLARE);
    expect(found).toMatchObject({ ip: CLOUDFLARE, company_found: true });
    expect(waits.length).toBeGreaterThan(0);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(15_000);

    waits.length = 0;
    const again = await client().lookup(CLOUDFLARE);
    expect(again.company).toEqual(found.company);
    expect(waits).toEqual([]);
  });

  it('that is refused reports the reason', async () => {
    const { client, project } = partner;
    const error = await failureOf(client().lookup('10.0.0.1'));
    expect(error).toBeInstanceOf(project.client.DoorplateError);
    expect(error).toMatchObject({
      kind: 'answer',
      outcome: 'refused',
      status: 400,
      code: 'invalid_ip',
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      message: expect.not.stringContaining('10.0.0.1'),
    });
  });

  it.each([
    [
      'an address that was never requested',
      (p: Partner) => p.client().readLookup('5.9.2.2'),
      404,
      'not_requested',
    ],
    ['another key', (p: Partner) => p.client({ apiKey: 'dp_wrong' }).usage(), 401, 'unauthorized'],
    [
      'a tracker that is not there',
      (p: Partner) => p.client().trackers.enable(randomUUID()),
      404,
      'tracker_not_found',
    ],
  ])('and other calls are refused for %s', async (_, call, status, code) => {
    expect(await failureOf(call(partner))).toMatchObject({ status, code, outcome: 'refused' });
  });

  it("or any other call beyond the key's rate waits and continues", async () => {
    const { service, project } = partner;
    const slow = await service.newKey({ requests_per_second: 1 });
    const client = project.client.createClient({ baseUrl: service.url, apiKey: slow.api_key, retries: 10 });
    const started = performance.now();
    const usages = await Promise.all([client.usage(), client.usage(), client.usage()]);
    for (const { key_id } of usages) expect(key_id).toBe(slow.key_id);
    expect(performance.now() - started).toBeGreaterThanOrEqual(1_000);
  });
});

describe('the feed of sessions', () => {
  it('is read over pages, resumed, and followed', async () => {
    const { client, makeTracker, visit } = partner;
    const { id: trackerId } = await makeTracker();
    for (const n of [1, 2, 3, 4, 5]) await visit(trackerId, `5.9.1.${n}`);
    const ids: string[] = [];
    const feed = client().sessions({ trackerId, limit: 2 });
    for await (const session of feed) {
      expect(session).toMatchObject({ tracker_id: trackerId, custom: { plan: 'pro' } });
      ids.push(session.session_id);
    }
    expect([ids.length, new Set(ids).size]).toEqual([5, 5]);

    const late: string[] = [];
    await visit(trackerId, '5.9.1.6');
    const followed = client().sessions({ trackerId, cursor: feed.cursor, followEverySeconds: 5 });
    for await (const { session_id } of followed) {
      expect(ids).not.toContain(session_id);
      late.push(session_id);
      if (late.length === 2) break;
      await visit(trackerId, '5.9.1.7');
    }
    expect(await client().session(late[1] ?? '')).toMatchObject({
      session_id: late[1],
      tracker_id: trackerId,
    });
  });
});

describe('the example', () => {
  it('waits as the service asks and prints the company', async () => {
    expect(await lookingUp.ended).toEqual({ code: 0, stderr: '' });
    expect(lookingUp.lines()).toEqual([
      { ip: GOOGLE, match_type: 'company', company_found: true, name: expect.stringContaining('Google') },
    ]);
  });
});

describe('a reveal', () => {
  let trackerId: string;
  let proxy: TcpProxy;
  let throughProxy: { baseUrl: string };

  beforeAll(async () => {
    await partner.client().lookup(GOOGLE);
    trackerId = (await partner.makeTracker()).id;
    proxy = await startTcpProxy({ host: '127.0.0.1', port: Number(partner.service.env.PORT) });
    throughProxy = { baseUrl: `http://127.0.0.1:${proxy.port}` };
  });
  afterAll(() => proxy?.close());

  const sessionFrom = async (ip: string): Promise<string> => {
    await partner.visit(trackerId, ip);
    let newest = '';
    for await (const { session_id } of partner.client().sessions({ trackerId })) newest = session_id;
    return newest;
  };
  const reveals = async () => (await partner.client().trackers.usage(trackerId)).totals.reveals;

  it('whose response is lost is the same reveal when it is requested again, and one unit', async () => {
    const session = await sessionFrom(GOOGLE);
    const [made, units] = [await reveals(), await partner.units()];
    partner.waits.length = 0;
    proxy.freeze('answers');
    const asked = partner.client(throughProxy).reveal(session);
    await eventually('the reveal is made', reveals, (now) => now === made + 1);
    proxy.cut();
    proxy.thaw();
    const { idempotencyKey, receipt } = await asked;
    expect(partner.waits, 'it was asked for again').toHaveLength(1);
    expect(receipt).toMatchObject({ session_id: session, status: 'complete', billable_units: 1 });
    expect(receipt.result.company?.name).toContain('Google');

    const again = await partner.client().reveal(session, { idempotencyKey });
    expect(again.receipt.reveal_id).toBe(receipt.reveal_id);
    expect([await reveals(), await partner.units()]).toEqual([made + 1, units + 1]);
  });

  it('of a new address polls its receipt', async () => {
    const session = await sessionFrom(QUAD9);
    partner.waits.length = 0;
    const { receipt } = await partner.client().reveal(session);
    expect(receipt).toMatchObject({ status: 'complete', billable_units: 1, result: { company_found: true } });
    expect(Math.min(...partner.waits)).toBeGreaterThanOrEqual(15_000);
  });

  it('of every session is made once by the example, however often it runs', async () => {
    const run = async () => {
      const program = partner.run('reveal-visitors', ['state.json']);
      expect(await program.ended).toEqual({ code: 0, stderr: '' });
      return program.lines();
    };
    const sessions: string[] = [];
    for await (const { session_id } of partner.client().sessions()) sessions.push(session_id);
    const first = await run();
    expect(first.map(({ session_id }) => session_id).sort()).toEqual(sessions.sort());
    expect(await run()).toEqual([]);
    const usage = await partner.client().usage();
    expect(await partner.units()).toBe(usage.reveals?.billable_reveals);
  });
});

describe('webhooks', () => {
  let receiver: ProgramRun;
  const printed = (isSo: (line: Record<string, unknown>) => boolean) =>
    eventually('it is printed', () => receiver.lines().find(isSo), Boolean, 20_000);
  afterAll(async () => {
    receiver?.child.kill();
    await receiver?.ended;
  });

  it('are received and verified by the example and listed in the history', async () => {
    const { client, makeTracker, visit } = partner;
    const { webhooks } = client();
    const hook = await webhooks.create({
      name: 'receiver',
      url: `http://localhost:${receiverPort}/`,
      events: ['session.created', 'reveal.completed'],
    });
    receiver = partner.run('receive-webhooks', [], {
      WEBHOOK_SECRET: hook.signing_secret,
      PORT: String(receiverPort),
    });
    await printed(({ listening }) => listening === receiverPort);

    const { event_id, delivery_id } = await webhooks.test(hook.id);
    expect(await printed(({ id }) => id === event_id)).toMatchObject({ type: 'webhook.test', again: false });
    const { id: trackerId } = await makeTracker();
    await visit(trackerId, GOOGLE);
    expect(await printed(({ type }) => type === 'session.created')).toMatchObject({
      summary: 'a visitor from US',
    });
    for await (const { session_id } of client().sessions({ trackerId })) await client().reveal(session_id);
    const summary = expect.stringContaining('Google');
    expect(await printed(({ type }) => type === 'reveal.completed')).toMatchObject({ summary });

    const delivery = () => webhooks.delivery(hook.id, delivery_id);
    const { event } = await eventually(
      'the test is delivered',
      delivery,
      ({ state }) => state === 'delivered',
    );
    expect(event).toMatchObject({ id: event_id, type: 'webhook.test' });
    await webhooks.retryDelivery(hook.id, delivery_id);
    await printed(({ id, again }) => id === event_id && again === true);
    const types: string[] = [];
    for await (const { type } of webhooks.deliveries(hook.id)) types.push(type);
    expect(types).toEqual(['reveal.completed', 'session.created', 'webhook.test']);

    const half = connect(receiverPort, '127.0.0.1').resume();
    half.end('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf');
    await once(half, 'close');
    const forged = await fetch(`http://127.0.0.1:${receiverPort}/`, { method: 'POST', body: '{}' });
    expect(forged.status).toBe(400);
    expect(await printed(({ refused }) => refused !== undefined)).toEqual({ refused: 'headers' });
    expect((await webhooks.delete(hook.id)).deleted).toBe(true);
  });
});
