/** Requests that manage custom domains: nearly right, so that they reach what lies behind the checks. */
import fc from 'fast-check';
import type { Known } from './known.ts';
import { customHost, idAmong, seldomAsking } from './tracking-requests.ts';

const hostname = fc.oneof(
  { arbitrary: customHost as fc.Arbitrary<unknown>, weight: 12 },
  {
    arbitrary: fc.constantFrom(
      ...[
        '',
        'localhost',
        'doorplate.test',
        '1.2.3.4',
        '::1',
        'a.example.',
        'A.example',
        'b\u00fccher.example',
      ],
      ...[
        'xn--bcher-kva.example',
        '\ud800.example',
        'a\u0000.example',
        'a_b.example',
        `${'a.'.repeat(200)}b`,
      ],
    ),
    weight: 3,
  },
  { arbitrary: fc.domain(), weight: 1 },
  { arbitrary: fc.string({ unit: 'binary', maxLength: 60 }), weight: 1 },
  { arbitrary: fc.jsonValue(), weight: 1 },
);
const created = fc.oneof(
  { arbitrary: hostname.map((name) => JSON.stringify({ hostname: name })), weight: 8 },
  { arbitrary: hostname.map((name) => JSON.stringify({ hostname: name, x: 1 })), weight: 1 },
  { arbitrary: fc.json(), weight: 1 },
  { arbitrary: fc.constantFrom('', '{', '{}', JSON.stringify({ hostname: 'a'.repeat(17_000) })), weight: 1 },
);

/** Requests of all these routes with these keys. */
export const domainRequests = ({ trackers, domains }: Known, authorization: fc.Arbitrary<string | null>) => {
  const request = (method: string, at: fc.Arbitrary<string>, body: fc.Arbitrary<string> | null) =>
    fc.record({
      method: fc.constant(method),
      target: seldomAsking(at),
      headers: fc.constant<Record<string, string>>(
        body === null ? {} : { 'content-type': 'application/json' },
      ),
      body: (body ?? fc.constant('')).map((text) => Buffer.from(text)),
      authorization,
    });
  const all = idAmong(trackers).map((id) => `/v1/trackers/${id}/domains`);
  const one = fc.tuple(all, idAmong(domains)).map(([at, id]) => `${at}/${id}`);
  return fc.oneof(
    { arbitrary: request('GET', all, null), weight: 3 },
    { arbitrary: request('POST', all, created), weight: 8 },
    { arbitrary: request('GET', one, null), weight: 4 },
    { arbitrary: request('DELETE', one, null), weight: 3 },
    { arbitrary: request('DELETE', one, fc.constantFrom('{}', '{"a":1}')), weight: 1 },
  );
};
