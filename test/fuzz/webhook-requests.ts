/** Requests that manage webhook endpoints: nearly right, so that they reach what lies behind the checks. */
import fc from 'fast-check';
import type { Known } from './known.ts';
import { idAmong, seldomAsking } from './tracking-requests.ts';

const text = fc.string({ unit: 'binary', maxLength: 120 });
/** Mostly the first. */
const or = <T>(right: fc.Arbitrary<T>, ...wrong: fc.Arbitrary<unknown>[]): fc.Arbitrary<unknown> =>
  fc.oneof({ arbitrary: right, weight: 8 }, ...wrong.map((arbitrary) => ({ arbitrary, weight: 1 })));

const events = or(
  fc.uniqueArray(fc.constantFrom('session.created', 'reveal.completed'), { minLength: 1 }),
  fc.array(fc.constantFrom('session.created', 'webhook.test')),
  fc.jsonValue(),
);
const wrongUrl = fc.oneof(
  fc.webUrl(),
  fc.constantFrom(
    ...[
      'http://a.example',
      'https://10.0.0.1/',
      'https://0x7f.1/',
      'https://localhost/',
      'https://a.example:8443/',
    ],
    ...[
      'https://a.example/#',
      'https://u:p@a.example/',
      'https://a.example./',
      'https://\u0000.example/',
      '\ud800',
    ],
  ),
  text,
  fc.jsonValue(),
);
const url = or(
  fc.nat(9).map((n) => `https://hooks${n}.example.com/x`),
  wrongUrl,
);
const name = or(fc.constantFrom('receiver', ' other '), text, fc.jsonValue());

const bodies = ({ trackers }: Known) => {
  const tracker_id = or(idAmong(trackers), fc.constant(null), fc.jsonValue());
  const created = fc.record(
    { name, url, events, tracker_id, more: fc.constant(1) },
    { requiredKeys: ['name', 'url', 'events'] },
  );
  const goodUrl = fc.constantFrom<unknown>('https://a.example/', 'https://b.example/x?y=1');
  const to = (destination: fc.Arbitrary<unknown>) =>
    destination.map((url) => ({
      name: 'receiver',
      url,
      events: ['session.created'],
    }));
  const changed = fc.record(
    { name, events, enabled: or(fc.boolean(), fc.jsonValue()) },
    { requiredKeys: [] },
  );
  return {
    created: fc.oneof(
      { arbitrary: to(goodUrl), weight: 2 },
      { arbitrary: to(wrongUrl), weight: 1 },
      { arbitrary: created, weight: 2 },
      { arbitrary: fc.jsonValue(), weight: 1 },
    ),
    changed: fc.oneof({ arbitrary: changed, weight: 5 }, fc.jsonValue()),
  };
};

/** Requests of all these routes with these keys. */
export const webhookRequests = (known: Known, authorization: fc.Arbitrary<string | null>) => {
  const of = (at: fc.Arbitrary<string>, method: string, body: fc.Arbitrary<unknown> | null) =>
    fc.record({
      method: fc.constant(method),
      target: seldomAsking(at),
      headers: fc.constant<Record<string, string>>(
        body === null ? {} : { 'content-type': 'application/json' },
      ),
      body: (body ?? fc.constant('')).map((value) => Buffer.from(body === null ? '' : JSON.stringify(value))),
      authorization,
    });
  const all = fc.constant('/v1/webhooks');
  const one = idAmong(known.webhooks).map((id) => `/v1/webhooks/${id}`);
  const { created, changed } = bodies(known);
  return fc.oneof(
    { arbitrary: of(all, 'GET', null), weight: 4 },
    { arbitrary: of(all, 'POST', created), weight: 8 },
    { arbitrary: of(one, 'GET', null), weight: 4 },
    { arbitrary: of(one, 'PATCH', changed), weight: 6 },
    { arbitrary: of(one, 'DELETE', null), weight: 1 },
    // Often: within a day of the clock, which leaps, one must meet the other.
    {
      arbitrary: of(
        one.map((path) => `${path}/rotate-secret`),
        'POST',
        null,
      ),
      weight: 16,
    },
  );
};
