import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { afterEach, expect, it } from 'vitest';
import { createServer } from '../../../clients/typescript/src/cli/mcp-server.ts';
import { answer, BROKEN, fakeService, REQUEST_ID, type Reply, refused } from './fakes.ts';

const [SESSION, OTHER] = ['a3b0c442-98fc-4c14-9afb-f4c8996fb924', 'a3b0c442-98fc-4c14-9afb-f4c8996fb925'];
const pending = answer(
  202,
  {
    ip: '9.1.1.1',
    status: 'pending',
    company_found: null,
    company: null,
    attempts: 0,
    poll_after_seconds: 15,
  },
  { 'retry-after': '15' },
);
const network = {
  ...{ connection_type: null, audience_type: null, audience_group: null, detail_level: null },
  is_isp: true,
};
const found = {
  ...{ status: 'complete', match_type: 'isp', company_found: false, enriched_at: null, stale: true },
  ...{ fresh_until: null, refresh_status: 'pending', refresh_error: null, network, company: null },
};
const receipt = {
  ...{ reveal_id: 'r1', session_id: SESSION, tracker_id: 't1', status: 'pending', billable_units: 0 },
  ...{ created_at: '', completed_at: null, expires_at: '', result: null },
};

const opened: Client[] = [];
afterEach(async () => {
  for (const client of opened.splice(0)) await client.close();
});

/** An agent's host beside a service that replies so, with a clock that moves as far as needed. */
const host = async (replies: readonly Reply[]) => {
  const service = fakeService(replies, { retries: 2 });
  const server = createServer({ client: service.client, version: '1', allowReveals: true });
  const [here, there] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'a host', version: '1' });
  opened.push(client);
  await server.connect(there);
  await client.connect(here);
  const call = async (name: string, args: Record<string, unknown>) => {
    const { content, isError, structuredContent } = await service.until(
      client.callTool({ name, arguments: args }),
    );
    const [first] = content;
    return {
      isError: isError === true,
      words: first?.type === 'text' ? first.text : '',
      body: structuredContent,
    };
  };
  return { ...service, mcp: client, call };
};

it('answers with pending, and no error, when a lookup takes longer than an agent waits', async () => {
  const { call, asked, now } = await host([pending]);
  const { isError, words, body } = await call('lookup_address', { ip: '9.1.1.1' });
  expect([isError, body]).toEqual([false, expect.objectContaining({ status: 'pending' })]);
  expect(words).toMatch(/^Not known yet, which is not "no company"/);
  expect(now()).toBeLessThan(50_000);
  expect(asked.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET', 'GET']);
});

it('says that a result is old and being refreshed', async () => {
  const { call } = await host([answer(200, { ip: '9.1.1.1', ...found })]);
  expect((await call('lookup_address', { ip: '9.1.1.1' })).words).toBe(
    'No company was found: the address belongs to an internet provider. The saved result is old; its refresh is pending.',
  );
});

it('answers with the receipt of a pending reveal, and goes on with the same reveal', async () => {
  const { call, asked } = await host([answer(202, receipt, { 'retry-after': '15' })]);
  const { isError, words, body } = await call('reveal_session', { session_id: SESSION });
  expect([isError, body]).toEqual([false, expect.objectContaining({ reveal_id: 'r1', status: 'pending' })]);
  expect(words).toContain('no unit is billed so far');

  for (const session_id of [SESSION.toUpperCase(), OTHER]) await call('reveal_session', { session_id });
  const keys = asked
    .filter(({ method }) => method === 'POST')
    .map(({ headers }) => headers['Idempotency-Key']);
  expect(keys[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect([keys.length, keys[1] === keys[0], keys[2] === keys[0]]).toEqual([3, true, false]);
});

it("takes null and '' as left out, and a number as text", async () => {
  const page = { sessions: [], next_cursor: 'c', has_more: false, request_id: REQUEST_ID };
  const { call, asked } = await host([answer(200, page)]);
  const args = { tracker_id: null, cursor: '', limit: '10' };
  expect(await call('list_sessions', args)).toMatchObject({ isError: false });
  expect(await call('list_sessions', { limit: '' })).toMatchObject({ isError: false });
  expect(await call('list_sessions', { limit: 'ten' })).toMatchObject({ isError: true });
  expect(asked.map(({ url }) => url.split('?')[1])).toEqual(['limit=10', undefined]);
});

it.each([
  [
    'the delay that the service asks for',
    [refused(429, 'enrichment_limit', 3_600)],
    '; try again in 3600 seconds',
  ],
  [
    'an unknown outcome',
    [refused(503, 'reveal_unconfirmed')],
    '; it may have been done: the same call again is safe',
  ],
  [
    'that accepted work goes on',
    [pending, refused(401, 'unauthorized')],
    '; the work was accepted and goes on',
  ],
])('a failure says %s', async (_what, replies, said) => {
  const { call } = await host(replies);
  const { isError, words } = await call('lookup_address', { ip: '9.1.1.1' });
  expect([isError, words]).toEqual([true, expect.stringMatching(/^[a-z_]+: No\. \(request id /)]);
  expect(words.split(`(request id ${REQUEST_ID})`)[1]).toBe(said);
});

it('a failure without an answer of the API is one line without a stack', async () => {
  const broken = await host([BROKEN]);
  expect(await broken.call('usage', {})).toEqual({
    isError: true,
    words: 'GET /v1/usage: no answer; its outcome is unknown',
    body: undefined,
  });
  const { call } = await host([answer(502, '<html>')]);
  const { words } = await call('preview_session', { session_id: '..' });
  expect(words).toBe('session_id must be an id');
});

it('a call that the host cancels ends its request', async () => {
  const { mcp, asked, until } = await host(['hangs']);
  const stop = new AbortController();
  const calling = mcp.callTool({ name: 'usage', arguments: {} }, { signal: stop.signal });
  await new Promise(setImmediate);
  expect(asked).toHaveLength(1);
  stop.abort();
  await expect(calling).rejects.toThrow();
  // Neither the time limit of the attempt nor a repeat is left.
  await expect(until(new Promise(() => {}))).rejects.toThrow('it waits for nothing');
  expect(asked).toHaveLength(1);
});
