import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';

/** A request of a load. */
export interface Request {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Load {
  readonly url: string;
  /** Makes the request of a number; called once a number. */
  readonly request: (number: number) => Request;
  /** The only status that is right. */
  readonly expect: number;
  /** Requests a second, evenly spaced as far as the timer allows. */
  readonly rate: number;
  readonly seconds: number;
  readonly connections: number;
  /** Requests that may be under way or wait for a connection; a server that is slower gets fewer. */
  readonly underWay: number;
}

const TICK_MS = 2;

/**
 * Sends evenly spaced requests, with the numbers from `first` on.
 * @returns the milliseconds of each answer from the moment in which it was due @throws Error on another status than expected
 */
export async function load(
  { url, request, expect, rate, seconds, connections, underWay: most }: Load,
  first: number,
): Promise<number[]> {
  const pool = new Pool(url, { connections: Math.min(connections, Math.ceil(rate)), pipelining: 1 });
  const underWay = new Set<Promise<void>>();
  const latencies: number[] = [];
  let wrong: Error | null = null;
  const send = async (number: number): Promise<void> => {
    const due = performance.now();
    const { path, ...rest } = request(number);
    const { statusCode, body } = await pool.request({ path, ...rest });
    const text = await body.text();
    latencies.push(performance.now() - due);
    if (statusCode !== expect) wrong ??= new Error(`${rest.method} ${path} answered ${statusCode}: ${text}`);
  };
  let sent = 0;
  try {
    const began = performance.now();
    for (let ms = 0; ms < seconds * 1_000 && wrong === null; ms = performance.now() - began) {
      const due = Math.min((ms * rate) / 1_000, sent + most - underWay.size);
      for (; sent < due; sent += 1) {
        const sending = send(first + sent)
          .catch((error: Error) => {
            wrong ??= error;
          })
          .finally(() => underWay.delete(sending));
        underWay.add(sending);
      }
      await pause(TICK_MS);
    }
    await Promise.all(underWay);
  } finally {
    await pool.close();
  }
  if (wrong !== null) throw wrong;
  return latencies;
}
