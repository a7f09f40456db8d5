/** A service and a clock for the client, so that no test waits and every wait is recorded. */
import {
  type Client,
  type ClientOptions,
  createClient,
  type Time,
} from '../../../clients/typescript/src/index.ts';

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly at: number;
}

/** The reply to a request: a response, an error of fetch, or none. */
export type Reply = Response | Error | 'hangs';

export const answer = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });

export const REQUEST_ID = '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11';

/** A refusal in the service's format. */
export const refused = (status: number, code: string, retryAfter?: number): Response =>
  answer(
    status,
    { error: { code, message: 'No.' }, request_id: REQUEST_ID },
    retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) },
  );

export const BROKEN = new TypeError('fetch failed');

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

interface FakeClock {
  readonly time: Time;
  now(): number;
  /** Advances the time as far as needed. @throws when the promise would never settle */
  until<T>(promise: Promise<T>): Promise<T>;
}

const fakeClock = (): FakeClock => {
  let now = 0;
  const sleepers = new Set<Sleeper>();
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const sleeper = { at: now + ms, wake: resolve };
      sleepers.add(sleeper);
      signal?.addEventListener('abort', () => {
        sleepers.delete(sleeper);
        reject(signal.reason);
      });
    });
  const until = async <T>(promise: Promise<T>): Promise<T> => {
    let settled = false;
    const settle = (): void => {
      settled = true;
    };
    promise.then(settle, settle);
    for (;;) {
      await new Promise(setImmediate);
      if (settled) return promise;
      const next = [...sleepers].sort((one, other) => one.at - other.at)[0];
      if (next === undefined) throw new Error('it waits for nothing');
      sleepers.delete(next);
      now = next.at;
      next.wake();
    }
  };
  return { time: { now: () => now, sleep }, now: () => now, until };
};

export interface Fake extends FakeClock {
  readonly client: Client;
  readonly asked: readonly Asked[];
}

/** A client whose n-th request gets the n-th reply (the last reply repeats), or the reply of a function. */
export const fakeService = (
  replies: readonly Reply[] | ((asked: Asked) => Reply),
  options: Partial<ClientOptions> = {},
): Fake => {
  const clock = fakeClock();
  const asked: Asked[] = [];
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const one: Asked = {
      method: init.method ?? '',
      url: url.replace('https://doorplate.example', ''),
      headers: init.headers as Record<string, string>,
      body: init.body === undefined ? undefined : JSON.parse(String(init.body)),
      at: clock.now(),
    };
    const reply =
      typeof replies === 'function' ? replies(one) : replies[Math.min(asked.length, replies.length - 1)];
    asked.push(one);
    if (reply instanceof Response) return reply.clone();
    if (reply instanceof Error) throw reply;
    return new Promise((_, reject) => {
      init.signal?.addEventListener('abort', () => reject(init.signal?.reason));
    });
  };
  const client = createClient({
    baseUrl: 'https://doorplate.example',
    apiKey: 'dp_test',
    time: clock.time,
    fetch: fetch as typeof globalThis.fetch,
    ...options,
  });
  return { ...clock, client, asked };
};

export const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error,
  );
