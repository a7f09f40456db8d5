import { randomUUID } from 'node:crypto';
import { utcDay } from '../../domain/kernel/time.ts';
import { signalsStream } from '../../domain/signals/events.ts';
import { addressOf } from '../support/addresses.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import type { Product } from '../support/product.ts';
import { type Raw, type RawAppends, startRawAppends } from '../support/raw-appends.ts';
import { alternate, median, medianRatio } from '../support/statistics.ts';

const BATCH = 1_000;
const SENDERS = 4;
/** The target, signals a second. */
const TARGET_PER_SECOND = 5_000;
/** More than any run needs. */
const ADDRESSES = 1_000_000;

/**
 * `POST /signals` in batches of 1,000 signals to their 202, by four senders: durable by then, and counted in the read
 * model. Against appends of events of the same bytes by as many callers, in a separate process.
 */
export const signals: Row = {
  name: 'signals',
  run: async (bench) => {
    const product = await bench.product();
    await send(product, newBatch(bench.freshAddresses(BATCH)));
    const raw = await startRawAppends(SENDERS, {}, await bytesOfBatch(product));
    try {
      return await compare(bench, product, raw);
    } finally {
      await raw.end();
    }
  },
};

const compare = async (bench: Bench, product: Product, raw: RawAppends): Promise<readonly Line[]> => {
  const { rounds, seconds } = bench.effort;
  const { a, b } = await alternate(
    rounds,
    async () => {
      const sent = await sendFor(product, bench.freshAddresses(ADDRESSES), seconds);
      await product.followed();
      return sent;
    },
    () => raw.measure(seconds),
  );
  return toLines(a, b);
};

const bytesOfBatch = (product: Product): Promise<number> =>
  product.beside(async ({ store }) => {
    const backwards = { direction: 'backwards', limit: 1 } as const;
    const events = await Array.fromAsync(store.readStream(signalsStream(utcDay(Date.now())), backwards));
    return JSON.stringify(events[0]?.data).length;
  });

/** Signals of many addresses, a few of each, from a hundred domains. */
const newBatch = (first: number): string =>
  JSON.stringify({
    signals: Array.from({ length: BATCH }, (_, n) => ({
      event_id: randomUUID(),
      ip: addressOf(first + (n >> 2)),
      email_domain: `company-${n % 100}.io`,
      evidence: n % 3 === 0 ? 'submitted' : 'field_only',
      site: `www.website-${n % 10}.com`,
      installation_id: `installation-${n % 20}`,
      page_run_id: randomUUID(),
      occurred_at: new Date().toISOString(),
    })),
  });

const send = async ({ service }: Product, body: string): Promise<void> => {
  const answer = await fetch(`http://127.0.0.1:${service.env.OPS_PORT}/signals`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  const text = await answer.text();
  if (answer.status !== 202 || JSON.parse(text).accepted !== BATCH)
    throw new Error(`${answer.status} ${text}`);
};

interface Sent {
  readonly perSecond: number;
  /** Per signal, by meter. */
  readonly cpuMicros: Readonly<Record<string, number>>;
  readonly p50: number;
}

/** Four senders, each with its next batch as soon as the last was answered. The batches are created on the way. */
const sendFor = async (product: Product, first: number, seconds: number): Promise<Sent> => {
  const meters = Object.entries(product.meters);
  const before = meters.map(([, read]) => read());
  const started = performance.now();
  const times: number[] = [];
  const sender = async (number: number): Promise<void> => {
    for (let n = number; performance.now() - started < seconds * 1_000; n += SENDERS) {
      const body = newBatch(first + n * BATCH);
      const begun = performance.now();
      await send(product, body);
      times.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, (_, number) => sender(number)));
  const clues = times.length * BATCH;
  const micros = meters.map(([name, read], index) => [name, ((read() - (before[index] ?? 0)) * 1e6) / clues]);
  return {
    perSecond: clues / ((performance.now() - started) / 1_000),
    cpuMicros: Object.fromEntries(micros),
    p50: median(times),
  };
};

const toLines = (a: readonly Sent[], b: readonly Raw[]): readonly Line[] => {
  const clues = a.map(({ perSecond }) => perSecond);
  const raw = b.map(({ perSecond }) => perSecond * BATCH);
  const micros = (meter: string) => median(a.map(({ cpuMicros }) => cpuMicros[meter] ?? 0)).toFixed(0);
  const sent = {
    of: `POST /signals, ${SENDERS} senders of ${BATCH}: clues`,
    value: median(clues),
    unit: '/s',
  };
  return [
    {
      row: 'signals',
      ratio: median(clues) / TARGET_PER_SECOND,
      target: { atLeast: 1 },
      a: sent,
      b: { of: 'aim', value: TARGET_PER_SECOND, unit: '/s' },
      notes: [
        `CPU a clue, with its read model: server ${micros('server')} µs and PostgreSQL ${micros('PostgreSQL')} µs`,
        `a batch: p50 ${median(a.map(({ p50 }) => p50)).toFixed(0)} ms`,
      ],
    },
    {
      row: 'signals, to raw appends',
      ratio: medianRatio(clues, raw),
      target: null,
      a: sent,
      b: { of: `appends of the same bytes, ${SENDERS} callers: clues`, value: median(raw), unit: '/s' },
      notes: [],
    },
  ];
};
