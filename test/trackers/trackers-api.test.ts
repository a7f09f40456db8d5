import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { type Key, startApi, type TestApi } from '../support/api.ts';

let api: TestApi;
let key: Key;
beforeAll(async () => {
  api = await startApi({ env: { TRACKERS_PER_PARTNER: '10' } });
  key = await api.key();
});
afterAll(() => api.close());

const VALID = { name: 'Main website', origins: ['https://www.example.com', 'https://*.example.com'] };
const create = (by: Key, payload: unknown = VALID) =>
  api.inject(by, { method: 'POST', url: '/v1/trackers', payload: payload as object });
const call = (by: Key, method: 'DELETE' | 'POST', path: string) =>
  api.inject(by, { method, url: `/v1/trackers/${path}` });
const list = async (by: Key) =>
  (await api.inject(by, { method: 'GET', url: '/v1/trackers' })).json().trackers as { id: string }[];
const codeOf = (answer: { json(): { error?: { code: string } } }) => answer.json().error?.code;

describe('changes of trackers and domains', () => {
  it('have a rate a day and partner, because their events are kept for ever', async () => {
    const by = await api.key();
    const { id } = (await create(by)).json();
    const now = api.runtime.clock.now();
    await api.sql.query(`select work.take_rate('changes of ' || $1, 10000, $2, 9990, $3, 0, 0)`, [
      by.partner_id,
      DAY,
      now,
    ]);
    const other = await api.key({}, by.partner_id);
    const spent = await Promise.all(Array.from({ length: 12 }, () => call(other, 'DELETE', id)));
    expect(spent.filter(({ statusCode }) => statusCode === 200).length).toBeLessThanOrEqual(10);
    const refused = await call(by, 'DELETE', id);
    expect([refused.statusCode, codeOf(refused)]).toEqual([429, 'rate_limit']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(3_600);
    const domain = {
      method: 'POST',
      url: `/v1/trackers/${id}/domains`,
      payload: { hostname: 'a.example.com' },
    };
    expect((await api.inject(by, { ...domain, method: 'POST' })).statusCode).toBe(429);
    expect(await list(by)).toHaveLength(1);
    expect((await create(await api.key())).statusCode).toBe(201);
  });
});

describe('a tracker over HTTP', () => {
  it('is created, listed with its snippet, disabled, enabled and deleted', async () => {
    const by = await api.key();
    const created = await create(by, { ...VALID, name: ' Main website ', customer_reference: 'c-42' });
    expect(created.statusCode).toBe(201);
    const { request_id, ...tracker } = created.json();
    expect(request_id).toBe(created.headers['x-request-id']);
    expect(tracker).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Main website',
      origins: VALID.origins,
      customer_reference: 'c-42',
      created_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      disabled_at: null,
      snippet: `<script async src="http://doorplate.test/tracking/a.js?tracker_id=${tracker.id}" data-custom='{}'></script>`,
    });
    expect(await list(by)).toEqual([tracker]);

    const disabled = (await call(by, 'DELETE', tracker.id)).json();
    expect(disabled.disabled_at).not.toBeNull();
    expect((await call(by, 'DELETE', tracker.id)).json().disabled_at).toBe(disabled.disabled_at);
    expect(await list(by)).toMatchObject([{ id: tracker.id, disabled_at: disabled.disabled_at }]);
    expect((await call(by, 'POST', `${tracker.id}/enable`)).json()).toMatchObject({ disabled_at: null });
    expect((await call(by, 'POST', `${tracker.id}/enable`)).statusCode).toBe(200);

    const deleted = await call(by, 'POST', `${tracker.id}/delete`);
    expect(deleted.json()).toEqual({
      id: tracker.id,
      deleted: true,
      deleted_at: expect.any(String),
      request_id: deleted.headers['x-request-id'],
    });
    expect((await call(by, 'POST', `${tracker.id}/delete`)).json().deleted_at).toBe(
      deleted.json().deleted_at,
    );
    expect(await list(by)).toEqual([]);
    for (const answer of [
      await call(by, 'POST', `${tracker.id}/enable`),
      await call(by, 'DELETE', tracker.id),
    ]) {
      expect([answer.statusCode, codeOf(answer)]).toEqual([410, 'tracker_deleted']);
    }
  });

  it('is changed, and collects by its new origins at once', async () => {
    const by = await api.key();
    const { id, request_id: _, ...before } = (await create(by)).json();
    const patch = (payload: object, of: string = id) =>
      api.inject(by, { method: 'PATCH', url: `/v1/trackers/${of}`, payload });
    const visit = async (origin: string) => {
      const body = { tracker_id: id, token: randomUUID(), visit_id: randomUUID() };
      const headers = { origin, host: 'doorplate.test', 'content-type': 'text/plain' };
      const url = '/tracking/collect';
      return (await api.inject(null, { method: 'POST', url, payload: JSON.stringify(body), headers }))
        .statusCode;
    };
    expect(await visit('https://www.example.com')).toBe(204);
    const origins = ['https://shop.example.com'];
    const changed = await patch({ origins, customer_reference: 'c-1' });
    expect(changed.json()).toEqual({
      ...{ ...before, id, origins, customer_reference: 'c-1' },
      request_id: changed.headers['x-request-id'],
    });
    expect([await visit('https://shop.example.com'), await visit('https://www.example.com')]).toEqual([
      204, 403,
    ]);
    expect(await list(by)).toMatchObject([{ id, origins, customer_reference: 'c-1', name: before.name }]);
    expect((await patch({})).json()).toMatchObject({ origins, customer_reference: 'c-1' });
    expect((await patch({ customer_reference: null })).json().customer_reference).toBeNull();
    const { sessions } = (await api.inject(by, { method: 'GET', url: '/v1/sessions' })).json();
    expect(sessions.map((one: { customer_reference: unknown }) => one.customer_reference)).toEqual([
      null,
      null,
    ]);

    const refused: [object, string][] = [
      [{ x: 1 }, 'invalid_body'],
      [{ name: null }, 'invalid_tracker'],
      [{ customer_reference: 7 }, 'invalid_tracker'],
      [{ origins: null }, 'invalid_origin'],
    ];
    for (const [payload, code] of refused) expect(codeOf(await patch(payload))).toBe(code);
    expect(codeOf(await patch({}, 'no-uuid'))).toBe('invalid_tracker');
    expect(codeOf(await patch({}, (await create(await api.key())).json().id))).toBe('tracker_not_found');
    await call(by, 'POST', `${id}/delete`);
    const gone = await patch({ name: 'x' });
    expect([gone.statusCode, codeOf(gone)]).toEqual([410, 'tracker_deleted']);
  });

  test.each<[string, unknown, string]>([
    ['no name', { origins: VALID.origins }, 'invalid_tracker'],
    ['a name that is no string', { ...VALID, name: 7 }, 'invalid_tracker'],
    ['a name of blanks', { ...VALID, name: '   ' }, 'invalid_tracker'],
    ['a reference that is no string', { ...VALID, customer_reference: 7 }, 'invalid_tracker'],
    ['a lone surrogate', '{"name":"\\ud800","origins":["https://a.example.com"]}', 'invalid_tracker'],
    ['no origins', { name: 'x' }, 'invalid_origin'],
    ['origins that are no list', { ...VALID, origins: 'https://a.example.com' }, 'invalid_origin'],
    ['an origin with a path', { ...VALID, origins: ['https://a.example.com/'] }, 'invalid_origin'],
    ['another property', { ...VALID, x: 1 }, 'invalid_body'],
    ['no object', [], 'invalid_body'],
  ])('is refused with %s', async (_what, payload, code) => {
    const answer = await api.inject(key, {
      method: 'POST',
      url: '/v1/trackers',
      headers: { 'content-type': 'application/json' },
      payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
    });
    expect([answer.statusCode, codeOf(answer)]).toEqual([400, code]);
  });

  it('is the partner’s own', async () => {
    const { id } = (await create(await api.key())).json();
    for (const path of [`${id}/enable`, `${id}/delete`]) {
      expect(codeOf(await call(key, 'POST', path))).toBe('tracker_not_found');
    }
    expect(codeOf(await call(key, 'DELETE', id))).toBe('tracker_not_found');
    expect(codeOf(await call(key, 'DELETE', randomUUID()))).toBe('tracker_not_found');
    expect(codeOf(await call(key, 'DELETE', 'no-uuid'))).toBe('invalid_tracker');
    expect(codeOf(await call(key, 'DELETE', `${id}?x=1`))).toBe('invalid_query');
  });

  it('is shared by the keys of a partner', async () => {
    const first = await api.key();
    const second = await api.key({}, first.partner_id);
    const { id } = (await create(first)).json();
    expect(await list(second)).toMatchObject([{ id }]);
  });

  it('is refused beyond the limit, exactly, however many are created at once', async () => {
    const by = await api.key();
    const answers = await Promise.all(Array.from({ length: 30 }, () => create(by)));
    expect(answers.filter(({ statusCode }) => statusCode === 201)).toHaveLength(10);
    const refused = answers.filter((answer) => codeOf(answer) === 'tracker_limit');
    expect(refused).toHaveLength(20);
    expect(refused[0]?.headers['retry-after']).toMatch(/^\d+$/);
    const [first] = await list(by);
    await call(by, 'POST', `${first?.id}/delete`);
    expect((await create(by)).statusCode).toBe(201);
  });
});
