/** Requests that read and retry deliveries. */
import fc from 'fast-check';
import { type Known, oneOf } from './known.ts';
import { idAmong, seldomAsking } from './tracking-requests.ts';

const state = fc.oneof(
  { arbitrary: fc.constantFrom('pending', 'delivered', 'failed', 'cancelled', 'expired'), weight: 8 },
  { arbitrary: fc.constantFrom('', 'done', 'PENDING'), weight: 1 },
);

/** Requests of all these routes with these keys. */
export const deliveryRequests = (known: Known, authorization: fc.Arbitrary<string | null>) => {
  const { webhooks, deliveries, cursors } = known;
  const request = (method: string, target: fc.Arbitrary<string>, body: string) =>
    fc.record({
      method: fc.constant(method),
      target,
      headers: fc.constant<Record<string, string>>(body === '' ? {} : { 'content-type': 'application/json' }),
      body: fc.constant(Buffer.from(body)),
      authorization,
    });
  const endpoint = idAmong(webhooks).map((id) => `/v1/webhooks/${id}`);
  const parameter = fc.oneof(
    { arbitrary: state.map((value) => `status=${value}`), weight: 4 },
    { arbitrary: oneOf(cursors, 'x').map((cursor) => `cursor=${cursor}`), weight: 2 },
    { arbitrary: fc.constantFrom('limit=5', 'cursor=', 'cursor=%00'), weight: 1 },
  );
  const history = fc
    .tuple(endpoint, fc.array(parameter, { maxLength: 2 }))
    .map(([at, asked]) => `${at}/deliveries${asked.length === 0 ? '' : '?'}${asked.join('&')}`);
  const one = fc
    .tuple(oneOf(webhooks, 'x'), idAmong(deliveries))
    .map(([webhook, id]) => `/v1/webhooks/${webhook}/deliveries/${id}`);
  const retry = seldomAsking(one.map((at) => `${at}/retry`));
  const recover = seldomAsking(endpoint.map((at) => `${at}/recover`));
  const since = fc.constantFrom('2026-03-14T00:00:00Z', '2026-03-14', '\u0000', 7, null, undefined);
  const recoverBody = fc.record({ since, extra: fc.constantFrom(undefined, undefined, 1) });
  const recovery = fc.tuple(endpoint, idAmong(deliveries)).map(([at, id]) => `${at}/recoveries/${id}`);
  return fc.oneof(
    {
      arbitrary: fc
        .tuple(request('POST', recover, '{}'), recoverBody)
        .map(([asked, body]) => ({ ...asked, body: Buffer.from(JSON.stringify(body)) })),
      weight: 2,
    },
    { arbitrary: request('GET', seldomAsking(recovery), ''), weight: 1 },
    { arbitrary: request('GET', history, ''), weight: 6 },
    { arbitrary: request('GET', seldomAsking(one), ''), weight: 6 },
    { arbitrary: request('POST', retry, ''), weight: 5 },
    { arbitrary: request('POST', retry, '{}'), weight: 2 },
    { arbitrary: request('POST', retry, '{"a":1}'), weight: 1 },
    { arbitrary: request('POST', seldomAsking(endpoint.map((at) => `${at}/test`)), '{}'), weight: 3 },
  );
};
