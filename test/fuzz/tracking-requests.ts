/** Requests to what pixels send and partners read of it: nearly right, so that they reach what lies behind the checks. */
import fc from 'fast-check';
import { type Known, oneOf } from './known.ts';
import { date, ipText } from './values.ts';

/** What the scene's trackers allow, beside what they don't. */
export const ORIGIN = 'https://www.example.com';
/** The service's own, as `startApi` names it. */
const HOST = 'doorplate.test';
/** Custom domains that trackers may have; half of them point at the service. */
export const customHost = fc.nat(39).map((n) => `s${n}.visits.example`);
const UNKNOWN = '3c0f8f3e-62a1-4d0e-9b1a-7f0c2d4e5a61';

const printable = fc.string({ maxLength: 30 });
const uuids = (count: number, version: 4 | 7) =>
  fc.nat(count - 1).map((n) => `00000000-0000-${version}000-8000-${String(n).padStart(12, '0')}`);
/** Few enough that they meet again. */
const tokens = uuids(300, 4);
const idempotencyKeys = fc.oneof(
  { arbitrary: uuids(60, 4), weight: 5 },
  { arbitrary: fc.uuid({ version: 4 }), weight: 3 },
  { arbitrary: uuids(2, 7), weight: 1 },
  { arbitrary: printable, weight: 1 },
);
const wrongId = fc.oneof(
  fc.uuid(),
  fc.constantFrom('', 'x', '00000000-0000-0000-0000-000000000000', '%00', '%', `%${'a'.repeat(300)}`),
);
/** Mostly one that is known. */
export const idAmong = (all: readonly string[]) =>
  fc.oneof(
    { arbitrary: oneOf(all, UNKNOWN), weight: 7 },
    { arbitrary: oneOf(all, UNKNOWN).map((id) => id.toUpperCase()), weight: 1 },
    { arbitrary: wrongId, weight: 2 },
  );

const label = fc.oneof(fc.string(), fc.integer(), fc.double(), fc.boolean(), fc.constant(null));
const custom = fc.oneof(
  { arbitrary: fc.dictionary(fc.stringMatching(/^[A-Za-z][\w.-]{0,20}$/), label), weight: 6 },
  { arbitrary: fc.dictionary(printable, fc.jsonValue()), weight: 1 },
  { arbitrary: fc.jsonValue(), weight: 1 },
  {
    arbitrary: fc.constantFrom<unknown>({ a: 'x'.repeat(513) }, { constructor: 1 }, { a: '\ud800' }),
    weight: 1,
  },
);
const origin = fc.oneof(
  { arbitrary: fc.constant(ORIGIN), weight: 8 },
  { arbitrary: fc.webUrl({ withQueryParameters: false }), weight: 1 },
  { arbitrary: printable, weight: 1 },
);
const visitor = fc.oneof(
  { arbitrary: fc.nat(60).map((n) => `9.1.1.${n}`), weight: 4 },
  { arbitrary: fc.ipV4(), weight: 2 },
  { arbitrary: fc.ipV6(), weight: 1 },
  { arbitrary: fc.constantFrom('10.0.0.1', '8.8.8.8, 127.0.0.1', '1.2.3.4:80'), weight: 1 },
  { arbitrary: printable, weight: 1 },
);

const host: fc.Arbitrary<string> = fc.oneof(
  { arbitrary: fc.constant(HOST), weight: 8 },
  { arbitrary: fc.constantFrom('DOORPLATE.test', 'doorplate.test:80', 'elsewhere.test'), weight: 1 },
  { arbitrary: customHost, weight: 1 },
);

const captures = ({ trackers }: Known) => {
  const visit = fc.record(
    {
      tracker_id: idAmong(trackers),
      token: fc.oneof({ arbitrary: tokens, weight: 9 }, { arbitrary: wrongId, weight: 1 }),
      visit_id: fc.oneof({ arbitrary: fc.uuid(), weight: 9 }, { arbitrary: tokens, weight: 1 }),
      custom,
    },
    { requiredKeys: ['tracker_id', 'token', 'visit_id'] },
  );
  return {
    body: fc.oneof(
      { arbitrary: visit.map((all) => JSON.stringify(all)), weight: 9 },
      { arbitrary: visit.map((all) => JSON.stringify({ ...all, url: 'x' })), weight: 1 },
      { arbitrary: fc.json(), weight: 1 },
      { arbitrary: fc.constantFrom('', '{', `{"token":"${'a'.repeat(8_200)}"}`), weight: 1 },
    ),
    headers: fc.record(
      {
        'content-type': fc.constantFrom(
          ...['text/plain', 'text/plain;charset=UTF-8', 'application/json', 'x'],
        ),
        host,
        origin,
        'x-forwarded-for': visitor,
        'user-agent': fc.constantFrom('Mozilla/5.0', 'Googlebot/2.1'),
        'sec-purpose': fc.constantFrom('', 'prefetch'),
      },
      { requiredKeys: ['content-type', 'host', 'origin', 'x-forwarded-for'] },
    ),
  };
};

const feed = ({ trackers, cursors }: Known) => {
  const parameter = fc.oneof(
    idAmong(trackers).map((id) => `tracker_id=${id}`),
    fc
      .oneof(fc.nat(120).map(String), fc.constantFrom('', '-1', '1e1', '9'.repeat(30)))
      .map((n) => `limit=${n}`),
    fc
      .oneof(
        { arbitrary: oneOf(cursors, ''), weight: 3 },
        {
          arbitrary: fc
            .oneof(fc.uint8Array({ maxLength: 30 }), fc.uint8Array({ minLength: 24, maxLength: 24 }))
            .map((bytes) => Buffer.from(bytes).toString('base64url')),
          weight: 1,
        },
      )
      .map((cursor) => `cursor=${cursor}`),
  );
  return fc.array(parameter, { maxLength: 3 }).map((asked) => `/v1/sessions?${asked.join('&')}`);
};

/** By hand, as a query seldom belongs to a path that has none. */
export const seldomAsking = (path: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(path, fc.nat(14)).map(([at, n]) => (n === 0 ? `${at}?a=1` : at));

/** Requests of all these routes with these keys. */
export const trackingRequests = (known: Known, authorization: fc.Arbitrary<string | null>) => {
  const { trackers, sessions, reveals } = known;
  const nothing = fc.constant(Buffer.alloc(0));
  const none: fc.Arbitrary<Record<string, string>> = fc.constant({});
  const get = (target: fc.Arbitrary<string>, headers = none) =>
    fc.record({ method: fc.constant('GET'), target, headers, body: nothing, authorization });
  const usage = fc
    .tuple(idAmong(trackers), fc.option(fc.tuple(date, date), { freq: 2 }))
    .map(([id, range]) => {
      const [from, to] = (range ?? []).map((day) => encodeURIComponent(day.toWellFormed()));
      return `/v1/trackers/${id}/usage${range === null ? '' : `?from=${from}&to=${to}`}`;
    });
  const preview = seldomAsking(idAmong(sessions).map((id) => `/v1/sessions/${id}`));
  const receipt = seldomAsking(idAmong(reveals).map((id) => `/v1/reveals/${id}`));
  const script = fc.oneof(
    { arbitrary: idAmong(trackers).map((id) => `?tracker_id=${id}`), weight: 4 },
    { arbitrary: ipText.map((text) => `?tracker_id=${encodeURIComponent(text.toWellFormed())}`), weight: 1 },
    { arbitrary: fc.constantFrom('', '?', '?tracker_id', '?a=1'), weight: 1 },
  );
  const capture = captures(known);
  return fc.oneof(
    { arbitrary: get(feed(known)), weight: 4 },
    { arbitrary: get(fc.oneof(preview, receipt)), weight: 6 },
    { arbitrary: get(usage), weight: 3 },
    {
      arbitrary: get(
        script.map((query) => `/tracking/a.js${query}`),
        fc.record({ host }),
      ),
      weight: 1,
    },
    {
      arbitrary: fc.record({
        method: fc.constant('POST'),
        target: seldomAsking(idAmong(sessions).map((id) => `/v1/sessions/${id}/reveal`)),
        headers: fc.oneof(
          { arbitrary: fc.record({ 'idempotency-key': idempotencyKeys }), weight: 8 },
          { arbitrary: fc.constant({ 'content-type': 'application/json' }), weight: 1 },
          {
            arbitrary: fc.record({
              'idempotency-key': idempotencyKeys,
              'content-type': fc.constantFrom('application/json', 'text/plain'),
            }),
            weight: 2,
          },
        ),
        body: fc.oneof(
          { arbitrary: nothing, weight: 6 },
          { arbitrary: fc.constantFrom('{}', '{"a":1}', '[').map((text) => Buffer.from(text)), weight: 1 },
        ),
        authorization,
      }),
      weight: 6,
    },
    {
      arbitrary: fc.record({
        method: fc.constantFrom('POST', 'POST', 'POST', 'POST', 'OPTIONS'),
        target: seldomAsking(fc.constant('/tracking/collect')),
        headers: capture.headers,
        body: capture.body.map((text) => Buffer.from(text)),
        authorization,
      }),
      weight: 8,
    },
  );
};
