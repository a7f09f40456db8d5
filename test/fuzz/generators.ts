/** Absurd and ordinary requests: what the API's fuzzing is made of. */
import fc from 'fast-check';
import { deliveryRequests } from './delivery-requests.ts';
import { domainRequests } from './domain-requests.ts';
import type { Known } from './known.ts';
import { trackingRequests } from './tracking-requests.ts';
import { date, ipText } from './values.ts';
import { webhookRequests } from './webhook-requests.ts';

const percent = (text: string) => encodeURIComponent(text.toWellFormed());
const parameter = fc.oneof(
  { arbitrary: ipText.map((ip) => `ip=${percent(ip)}`), weight: 6 },
  { arbitrary: date.map((day) => `from=${percent(day)}`), weight: 3 },
  { arbitrary: date.map((day) => `to=${percent(day)}`), weight: 3 },
  {
    arbitrary: fc.constantFrom(
      '',
      'ip',
      'ip=',
      '%69p=8.8.8.8',
      'ip=%',
      'ip=%FF',
      '=',
      'x=1',
      'ip[]=1',
      'a'.repeat(600),
    ),
    weight: 2,
  },
);
const query = fc.oneof(
  { arbitrary: parameter, weight: 5 },
  { arbitrary: fc.array(parameter, { maxLength: 4 }).map((parts) => parts.join('&')), weight: 2 },
);

const path = fc.oneof(
  { arbitrary: fc.constant('/v1/lookup'), weight: 10 },
  { arbitrary: fc.constant('/v1/usage'), weight: 5 },
  {
    arbitrary: fc.constantFrom(
      ...[
        '/',
        '/healthz',
        '/openapi.json',
        '/docs',
        '/v1',
        '/v1/',
        '/v1/lookup/',
        '/V1/lookup',
        '/v1/Usage',
        '/v1//usage',
      ],
      ...['/v1/%6cookup', '/v1/usage%2f', '/v1/lookup%00', '/v1/lookup;a', '/v1/lookup/1', '/healthz/', '/%'],
      ...[
        '/v2/lookup',
        '/v1/trackers',
        '/v1/sessions',
        '/v1/sessions/3c0f8f3e-62a1-4d0e-9b1a-7f0c2d4e5a61',
        '/v1/webhooks',
        '/tracking/collect',
        `/v1/${'a'.repeat(600)}`,
        '/v1/%c0%af',
      ],
    ),
    weight: 2,
  },
  { arbitrary: fc.webPath().map((at) => `/${at}`), weight: 1 },
);
const target = fc
  .tuple(path, fc.option(query, { freq: 8 }))
  .map(([at, asked]) => (asked === null ? at : `${at}?${asked}`));

const method = fc.oneof(
  { arbitrary: fc.constant('GET'), weight: 10 },
  { arbitrary: fc.constant('POST'), weight: 10 },
  {
    arbitrary: fc.constantFrom('HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'QUERY'),
    weight: 2,
  },
);

const value = fc.oneof(
  { arbitrary: ipText, weight: 6 },
  { arbitrary: fc.jsonValue(), weight: 1 },
  { arbitrary: fc.constantFrom(1e308, -0, 2 ** 53, null, true, [], {}), weight: 1 },
);
const json = fc.oneof(
  { arbitrary: value.map((ip) => JSON.stringify({ ip })), weight: 8 },
  {
    arbitrary: fc
      .tuple(value, value)
      .map(([a, b]) => `{"ip":${JSON.stringify(a)},"ip":${JSON.stringify(b)}}`),
    weight: 1,
  },
  { arbitrary: fc.json(), weight: 2 },
  {
    arbitrary: fc.constantFrom(
      ...[
        '',
        '{',
        '[',
        'null',
        '1e999',
        '{"ip":"8.8.8.8",}',
        '{"ip":"\\ud800"}',
        '{"__proto__":1}',
        '\ufeff{}',
      ],
      ...[
        '['.repeat(900),
        `{"ip":"${'9'.repeat(1_100)}"}`,
        `${' '.repeat(1_025)}{}`,
        `${' '.repeat(1_010)}{"ip":"8"}`,
      ],
    ),
    weight: 2,
  },
);
const body = fc.oneof(
  { arbitrary: json.map((text) => Buffer.from(text)), weight: 8 },
  { arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)), weight: 1 },
);

const printable = fc.string({ maxLength: 30 });
const contentType = fc.oneof(
  { arbitrary: fc.constant('application/json'), weight: 12 },
  {
    arbitrary: fc.constantFrom(
      'application/json; charset=utf-8',
      'application/json;charset=latin1',
      'text/plain',
    ),
    weight: 2,
  },
  { arbitrary: printable, weight: 1 },
);
const rarely = (arbitrary: fc.Arbitrary<string>, oneIn: number): fc.Arbitrary<string | null> =>
  fc.oneof({ arbitrary: fc.constant(null), weight: oneIn - 1 }, { arbitrary, weight: 1 });

/** Headers besides the key: the usual ones, sometimes wrong ones. */
const headers = fc
  .record({
    'content-type': rarely(fc.constant(''), 40).chain((none) =>
      none === null ? contentType : fc.constant(null),
    ),
    'content-encoding': rarely(fc.constantFrom('gzip', 'identity', ''), 20),
    'x-request-id': rarely(printable, 6),
    accept: rarely(printable, 6),
    expect: rarely(fc.constant('100-continue'), 30),
    'idempotency-key': rarely(printable, 6),
    'x-forwarded-for': rarely(printable, 6),
  })
  .map((fields) =>
    Object.fromEntries(
      Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== null),
    ),
  );

/** Requests with these keys: half of them nearly right, the others anything at all. */
export const requestWith = (known: Known, authorization: fc.Arbitrary<string | null>) =>
  fc.oneof(
    ...settledRequests(known, authorization),
    { arbitrary: domainRequests(known, authorization), weight: 3 },
    { arbitrary: webhookRequests(known, authorization), weight: 4 },
    { arbitrary: deliveryRequests(known, authorization), weight: 3 },
  );

/** Those whose answers depend on no work in the background but enrichment. */
export const settledRequests = (known: Known, authorization: fc.Arbitrary<string | null>) => {
  const record = (at: fc.Arbitrary<string>, by: fc.Arbitrary<string>) =>
    fc.record({ method: by, target: at, headers, body, authorization });
  const get = fc.constant('GET');
  const lookup = ipText.map((ip) => `/v1/lookup?ip=${percent(ip)}`);
  const usage = fc.tuple(date, date).map(([from, to]) => `/v1/usage?from=${percent(from)}&to=${percent(to)}`);
  const nextDay = fc
    .date({ noInvalidDate: true, min: new Date('0001-01-01'), max: new Date('9999-12-30') })
    .map((day) => [day, new Date(day.getTime() + 86_400_000)].map((at) => at.toISOString().slice(0, 10)))
    .map(([from, to]) => `/v1/usage?from=${from}&to=${to}`);
  const edges = fc.constantFrom(
    ...[
      '',
      '?from=0000-01-01&to=0000-01-02',
      '?from=0000-12-31&to=0001-01-01',
      '?from=0001-01-01&to=0001-01-02',
    ],
    ...[
      '?from=9999-12-30&to=9999-12-31',
      '?from=9999-12-31&to=10000-01-01',
      '?from=9999-12-31',
      '?to=9999-12-31',
    ],
  );
  const edgesOfUsage = edges.map((asked) => `/v1/usage${asked}`);
  return [
    { arbitrary: record(lookup, get), weight: 5 },
    { arbitrary: record(fc.constant('/v1/lookup'), fc.constant('POST')), weight: 5 },
    { arbitrary: record(fc.oneof(usage, nextDay, edgesOfUsage), get), weight: 2 },
    { arbitrary: trackingRequests(known, authorization), weight: 16 },
    { arbitrary: record(target, method), weight: 8 },
  ] as const;
};
