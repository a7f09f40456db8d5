import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ProgramRun } from '../support/packed-client.ts';
import { CLOUDFLARE, failureOf, GOOGLE, type Partner, startPartner } from './partner.ts';

let partner: Partner;
/** The output of the compilers. */
let said: string;
/** Concurrent, because it waits for as long as the service asks. */
let lookingUp: ProgramRun;

beforeAll(async () => {
  partner = await startPartner();
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
