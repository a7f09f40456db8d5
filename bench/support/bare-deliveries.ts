import { setTimeout as pause } from 'node:timers/promises';
import { cpuOf } from '../../cli/installation/process-stats.ts';
import { makeAuthority } from '../../test/support/certificates.ts';
import type { BareDeliverer } from '../deliver-bare.ts';
import { type Child, startChild } from './child.ts';

/** Webhook endpoints in a separate process. */
export interface WebhookSink {
  /** Each under a separate name, so that each has separate connections. */
  readonly urls: readonly string[];
  readonly port: number;
  /** PEM: the authority of its certificates. */
  readonly authority: string;
  received(): Promise<number>;
  /** Waits until it has received this many requests. @returns how many, and when (`performance.now()`) */
  reached(least: number): Promise<{ readonly received: number; readonly at: number }>;
  /** Records from now on when sessions' events come. @returns the number of requests so far */
  note(): Promise<number>;
  /** The label `n` of each session since then, and when its event came first: milliseconds since the epoch. */
  noted(): Promise<Map<number, number>>;
  end(): Promise<void>;
}

/** Deliveries without the rest of the product. */
export interface BareDeliveries {
  /** Delivers as fast as it can for this time. */
  measure(seconds: number): Promise<Delivered>;
  end(): Promise<void>;
}

export interface Delivered {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

const ENDPOINTS = 20;
const BODY_BYTES = 1_024;
const AT_ONCE = 8;
const START_MS = 10_000;
const SLACK_MS = 20_000;
const REACHED_MS = 120_000;
const POLL_MS = 20;

/** Starts the endpoints that both sides of a row of deliveries send to. */
export const startWebhookSink = async (): Promise<WebhookSink> => {
  const names = Array.from({ length: ENDPOINTS }, (_, nth) => `endpoint-${nth}.localhost`);
  const authority = await makeAuthority();
  const child = startChild('webhook-sink.ts', await authority.issue(names));
  const { port } = await child.next<{ port: number }>(START_MS);
  const ask = async <T>(message: object): Promise<T> => {
    child.say(message);
    return child.next<T>(START_MS);
  };
  const received = async (): Promise<number> => (await ask<{ received: number }>({})).received;
  return {
    urls: names.map((name) => `https://${name}:${port}/hooks`),
    port,
    authority: authority.cert,
    received,
    reached: async (least) => {
      for (const deadline = performance.now() + REACHED_MS; ; await pause(POLL_MS)) {
        const soFar = await received();
        if (soFar >= least) return { received: soFar, at: performance.now() };
        if (performance.now() > deadline) throw new Error(`${soFar} of ${least} deliveries came`);
      }
    },
    note: async () => (await ask<{ received: number }>({ note: true })).received,
    noted: async () => new Map((await ask<{ times: [number, number][] }>({ noted: true })).times),
    end: child.end,
  };
};

/**
 * A loop that vets, signs and sends 1 KB to each of the sink's endpoints, eight at a time, over kept-alive
 * connections, and does nothing else. Warmed up: the connections are open.
 */
export const bareDeliveries = async ({ urls, port, authority }: WebhookSink): Promise<BareDeliveries> => {
  const plan: BareDeliverer = { urls, ports: [port], authority, bodyBytes: BODY_BYTES, atOnce: AT_ONCE };
  const child = startChild('deliver-bare.ts', plan);
  try {
    await child.next<object>(START_MS);
    await deliver(child, 2);
    return { measure: (seconds) => deliver(child, seconds), end: child.end };
  } catch (error) {
    await child.end();
    throw error;
  }
};

const deliver = async (child: Child, seconds: number): Promise<Delivered> => {
  const before = cpuOf(child.pid);
  child.say({ seconds });
  const done = await child.next<{ deliveries: number; failures: number; seconds: number }>(
    seconds * 1_000 + SLACK_MS,
  );
  if (done.failures > 0) throw new Error(`${done.failures} deliveries failed`);
  return {
    perSecond: done.deliveries / done.seconds,
    cpuMicros: ((cpuOf(child.pid) - before) * 1e6) / done.deliveries,
  };
};
