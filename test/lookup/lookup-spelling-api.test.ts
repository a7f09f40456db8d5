import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Key, startApi, type TestApi } from '../support/api.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';

const provider = scriptedProvider();
let api: TestApi;
let key: Key;

beforeAll(async () => {
  provider.saysOtherwise(aCompany('Anyone'));
  api = await startApi({ providers: [provider] });
  key = await api.key();
});
afterAll(() => api.close());

/** Status and code of an answer. */
const refusal = (answer: { statusCode: number; json(): { error?: { code: string } } }) => [
  answer.statusCode,
  answer.json().error?.code,
];
const getting = async (query: string) =>
  refusal(await api.inject(key, { method: 'GET', url: `/v1/lookup${query}` }));
const posting = async (payload: string | Buffer, headers: Record<string, string> = {}, query = '') =>
  refusal(
    await api.inject(key, {
      method: 'POST',
      url: `/v1/lookup${query}`,
      payload,
      headers: { 'content-type': 'application/json', ...headers },
    }),
  );

describe('an address', () => {
  it.each([
    ['2001:4860:4860:0:0:0:0:8888', '2001:4860:4860::8888'],
    ['2A00:1450:4001:0831:0000:0000:0000:200E', '2a00:1450:4001:831::200e'],
    ['2600:1f18::0.0.0.1', '2600:1f18::1'],
    ['::ffff:9.9.9.9', '9.9.9.9'],
    ['::FFFF:0909:0908', '9.9.9.8'],
    ['0:0:0:0:0:ffff:9.9.9.7', '9.9.9.7'],
  ])('spelled %s is %s, and the answers echo the spelling', async (spelling, canonical) => {
    const posted = (await api.post(key, spelling)).json();
    expect(posted).toMatchObject({ ip: spelling, lookup_ip: canonical });
    expect(posted.status_url).toBe(`/v1/lookup?ip=${encodeURIComponent(canonical)}`);
    const saved = (await api.settled(key, spelling)).json();
    expect(saved).toMatchObject({ ip: spelling, matched_ip: canonical });
    expect((await api.get(key, canonical)).json()).toMatchObject({ ip: canonical, matched_ip: canonical });
    expect((await api.post(key, spelling)).json().ip).toBe(spelling);
  });

  it.each([
    ...['8.8.8', '8.8.8.8.8', '08.8.8.8', '010.8.8.8', '0x8.8.8.8', '134744072', '8.8.8.256', '8.8.8.-1'],
    ...[
      '8.8.8.8/32',
      '8.8.8.8:80',
      ' 8.8.8.8',
      '8.8.8.8 ',
      '8.8.8.8\n',
      '8.8.8.8\0',
      'http://8.8.8.8',
      '8,8,8,8',
    ],
    ...['[2a00::1]', '2a00::1%eth0', '2a00::1/64', '2a00:::1', '2a00::1::2', '2a00:1', '1:2:3:4:5:6:7:8:9'],
    ...['12345::', 'example.com', '', '٨.٨.٨.٨', '８.８.８.８', 'a'.repeat(46)],
  ])('spelled %j is invalid_ip', async (spelling) => {
    expect(refusal(await api.get(key, spelling))).toEqual([400, 'invalid_ip']);
    expect(refusal(await api.post(key, spelling))).toEqual([400, 'invalid_ip']);
  });

  it.each([
    ...['0.0.0.0', '10.0.0.1', '100.64.0.1', '127.0.0.1', '169.254.1.1', '172.16.0.1', '192.168.1.1'],
    ...['192.0.0.9', '192.0.2.1', '192.31.196.1', '192.52.193.1', '192.88.99.1', '192.175.48.1'],
    ...['198.18.0.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
    ...[
      '::',
      '::1',
      '::8.8.8.8',
      '::ffff:10.0.0.1',
      '64:ff9b::808:808',
      '64:ff9b:1::1',
      '100::1',
      '100:0:0:1::1',
    ],
    ...['200::1', '2001::1', '2001:1::1', '2001:20::1', '2001:db8::1', '2002:808:808::1', '2620:4f:8000::1'],
    ...['3fff::1', '4000::1', '5f00::1', 'fc00::1', 'fe80::1', 'fec0::1', 'ff02::1'],
  ])('that is not public, %s, is invalid_ip', async (ip) => {
    expect(refusal(await api.get(key, ip))).toEqual([400, 'invalid_ip']);
    expect(refusal(await api.post(key, ip))).toEqual([400, 'invalid_ip']);
  });
});

describe('the query of a GET', () => {
  it.each([
    '',
    '?',
    '?x=1',
    '?ip=8.8.8.8&ip=8.8.8.8',
    '?ip=8.8.8.8&x=',
    '?ip=8.8.8.8&',
    '?IP=8.8.8.8',
    '?&ip=8.8.8.8',
  ])('%j is invalid_query unless it has exactly one ip', async (query) => {
    const lenient = query === '?ip=8.8.8.8&' || query === '?&ip=8.8.8.8';
    expect(await getting(query)).toEqual(lenient ? [404, 'not_requested'] : [400, 'invalid_query']);
  });

  it('may spell the address with percent signs', async () => {
    expect(await getting('?ip=8%2E8.8.9')).toEqual([404, 'not_requested']);
    expect(await getting('?%69p=8.8.8.9')).toEqual([404, 'not_requested']);
    expect(await getting('?ip=%FF%FE')).toEqual([400, 'invalid_ip']);
    expect(await getting('?ip=%')).toEqual([400, 'invalid_ip']);
  });

  it('is uri_too_long over 512 characters of path and query, even without a key', async () => {
    const url = `/v1/lookup?ip=${'8'.repeat(512 - 14)}`;
    expect(url).toHaveLength(512);
    expect(refusal(await api.inject(key, { method: 'GET', url }))).toEqual([400, 'invalid_ip']);
    expect(refusal(await api.inject(key, { method: 'GET', url: `${url}8` }))).toEqual([414, 'uri_too_long']);
    expect(refusal(await api.inject(null, { method: 'GET', url: `${url}8` }))).toEqual([414, 'uri_too_long']);
  });
});

describe('the body of a POST', () => {
  it.each([
    ['', 'invalid_json'],
    ['{', 'invalid_json'],
    ['{"ip":"8.8.8.8"}}', 'invalid_json'],
    ["{'ip':'8.8.8.8'}", 'invalid_json'],
    ['\ufeff{"ip":"8.8.8.8"}', 'invalid_json'],
    [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'invalid_json'],
    ['null', 'invalid_body'],
    ['[]', 'invalid_body'],
    ['"8.8.8.8"', 'invalid_body'],
    ['{"ip":"8.8.8.8","x":1}', 'invalid_body'],
    ['{"x":1}', 'invalid_body'],
    ['{"__proto__":{"ip":"8.8.8.8"}}', 'invalid_body'],
    ['{}', 'invalid_ip'],
    ['{"ip":7}', 'invalid_ip'],
    ['{"ip":null}', 'invalid_ip'],
    ['{"ip":["8.8.8.8"]}', 'invalid_ip'],
    ['{"ip":"\\u0000"}', 'invalid_ip'],
    ['{"ip":"\\ud800"}', 'invalid_ip'],
  ])('%s is %s', async (body, code) => {
    expect(await posting(body)).toEqual([400, code]);
  });

  it('is body_too_large over 1,024 bytes, and not at 1,024', async () => {
    const body = (bytes: number) => `{"ip":"8"${' '.repeat(bytes - 10)}}`;
    expect(await posting(body(1_024))).toEqual([400, 'invalid_ip']);
    expect(await posting(body(1_025))).toEqual([413, 'body_too_large']);
  });

  it('needs the type application/json and no encoding, and the encoding is refused first', async () => {
    const body = '{"ip":"8.8.8.8"}';
    const json = [400, 'invalid_query'];
    expect(await posting(body, { 'content-type': 'application/json; charset=utf-8' }, '?a')).toEqual(json);
    const unsupported = [415, 'unsupported_media_type'];
    expect(await posting(body, { 'content-type': 'text/plain' })).toEqual(unsupported);
    expect(await posting(body, { 'content-type': 'application/json; charset=latin1' })).toEqual(unsupported);
    const encoded = { 'content-type': 'text/plain', 'content-encoding': 'gzip' };
    expect(await posting(body, encoded)).toEqual([415, 'unsupported_encoding']);
    expect(await posting(body, { 'content-encoding': 'identity' })).toEqual([415, 'unsupported_encoding']);
  });

  it('comes with no query string', async () => {
    expect(await posting('{"ip":"8.8.8.8"}', {}, '?ip=8.8.8.8')).toEqual([400, 'invalid_query']);
  });
});

describe('the path of the lookup', () => {
  it('names its methods in Allow and refuses all others, with a key or without', async () => {
    for (const method of ['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'TRACE'] as const) {
      const answer = await api.inject(null, { method: method as 'PUT', url: '/v1/lookup' });
      expect(answer.statusCode).toBe(405);
      expect(answer.headers.allow?.toString().split(', ').sort()).toEqual(['GET', 'POST']);
    }
  });

  it('is another path with a slash behind it or capitals in it', async () => {
    for (const url of ['/v1/lookup/', '/V1/lookup', '/v1/Lookup', '/v1//lookup', '/v1/lookup/x']) {
      expect(refusal(await api.inject(key, { method: 'GET', url }))).toEqual([404, 'not_found']);
    }
  });

  it('asks for a key with a Bearer challenge', async () => {
    for (const authorization of [
      '',
      'Bearer',
      'Bearer x',
      `Basic ${key.api_key}`,
      `Bearer  ${key.api_key}`,
    ]) {
      const answer = await api.inject(null, {
        method: 'GET',
        url: '/v1/lookup?ip=8.8.8.8',
        headers: { authorization },
      });
      expect(refusal(answer)).toEqual([401, 'unauthorized']);
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="partner"');
    }
    const inUrl = await api.inject(key, { method: 'GET', url: `/v1/lookup?ip=8.8.8.8&key=${key.api_key}` });
    expect(refusal(inUrl)).toEqual([401, 'unauthorized']);
  });
});
