/**
 * Sends webhooks as jobs of a queue, as people would write it: a job a delivery, retried with growing pauses, signed, sent with undici.
 * Argument: `QueuedDeliverer`. Prints `{pid}` of its PostgreSQL when it is ready, then takes lines: `{sessions}` queues five
 * deliveries for each, `{}` answers `{}` when all jobs are settled, `{rate, total}` queues a delivery to an endpoint that hangs and one
 * to the first of the others, and answers `{acknowledged}`, when each was queued (milliseconds since the epoch). Ends when its input
 * ends.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { LookupAddress } from 'node:dns';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { Agent } from 'undici';
import { postmasterOf } from '../../cli/installation/data-folder.ts';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { signatureHeaders } from '../../processors/webhooks/delivery/sender.ts';
import { pace } from '../support/webhooks.ts';

export interface QueuedDeliverer {
  readonly library: 'pg-boss' | 'graphile-worker';
  readonly folder: string;
  readonly urls: readonly string[];
  readonly hanging: string;
  readonly authority: string;
}

interface Delivery {
  readonly url: string;
  readonly event_id: string;
  readonly body: string;
}

interface Queue {
  /** Resolves when they are durable. */
  add(deliveries: readonly Delivery[]): Promise<unknown>;
  /** So that an endpoint which hangs does not keep the others waiting. */
  addIsolated(deliveries: readonly Delivery[]): Promise<unknown>;
  /** SQL whose one row says whether a job is left. */
  readonly left: string;
}

const OF_A_SESSION = 5;
/** Sessions that are written at once. */
const WRITERS = 64;
const ATTEMPTS = 8;
/** As the product's: the limit of an attempt. */
const TIMEOUT_MS = 10_000;
const CONNECTIONS = 20;
const POLL_MS = 20;
/** With the rest of the body about a kilobyte. */
const LABEL = 'x'.repeat(830);

const { library, folder, urls, hanging, authority } = JSON.parse(process.argv[2] ?? '') as QueuedDeliverer;
const postgres = await startEmbeddedPostgres({
  dataDir: folder,
  log: createLogger({ level: 'warn', destination: 'stderr' }),
});
const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });

const secrets = [randomBytes(32)];
const agent = new Agent({
  headersTimeout: TIMEOUT_MS,
  bodyTimeout: TIMEOUT_MS,
  connect: {
    ca: authority,
    // The names are of this bench alone.
    lookup: (_host, { all }, found) => {
      const address: LookupAddress = { address: '127.0.0.1', family: 4 };
      if (all) found(null, [address]);
      else found(null, address.address, address.family);
    },
  },
});

/** @throws when the endpoint does not accept it: the queue then sends it again */
const send = async ({ url, event_id, body }: Delivery): Promise<void> => {
  const bytes = Buffer.from(body);
  const { origin, pathname } = new URL(url);
  const response = await agent.request({
    origin,
    path: pathname,
    method: 'POST',
    headers: signatureHeaders(secrets, event_id, Date.now(), bytes),
    body: bytes,
  });
  await response.body.dump();
  if (response.statusCode >= 300) throw new Error(`status ${response.statusCode}`);
};

/**
 * Batches, bursts and notifications, as its documentation recommends for throughput; a worker settles its batch together. A second
 * queue limits each endpoint, with more workers and no batches, so that one that hangs holds a few workers: that costs most of the
 * rate, so the first has no such limit.
 */
const startPgBoss = async (): Promise<Queue> => {
  const { PgBoss } = await import('pg-boss');
  const boss = new PgBoss({ connectionString: postgres.url, max: CONNECTIONS, useListenNotify: true });
  boss.on('error', (error) => process.stderr.write(`pg-boss: ${error.message}\n`));
  await boss.start();
  const work = async (name: string, options: object): Promise<void> => {
    await boss.createQueue(name, { retryLimit: ATTEMPTS, retryDelay: 5, retryBackoff: true, notify: true });
    const fetching = { burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, perJobResults: true };
    await boss.work<Delivery>(name, { ...fetching, ...options }, (jobs) =>
      Promise.all(
        jobs.map(({ id, data }) =>
          send(data).then(
            () => ({ id, status: 'completed' as const }),
            () => ({ id, status: 'failed' as const }),
          ),
        ),
      ),
    );
  };
  await work('deliveries', { localConcurrency: 8, batchSize: 40 });
  await work('isolated', { localConcurrency: 64, batchSize: 1, groupConcurrency: 8 });
  return {
    add: (deliveries) =>
      boss.insert(
        'deliveries',
        deliveries.map((data) => ({ data })),
      ),
    addIsolated: (deliveries) =>
      boss.insert(
        'isolated',
        deliveries.map((data) => ({ data, group: { id: data.url } })),
      ),
    left: `select exists (select from pgboss.job where name = 'deliveries' and state < 'completed') as left`,
  };
};

/**
 * The batching of its documentation's own benchmark, with more jobs at once, because they wait for the network. The jobs of an
 * endpoint that hangs do not fill them all; named queues, of which each does one job at a time, were slower at that.
 */
const startGraphileWorker = async (): Promise<Queue> => {
  const { Logger, makeWorkerUtils, run } = await import('graphile-worker');
  const preset = {
    worker: {
      connectionString: postgres.url,
      logger: new Logger(() => () => undefined),
      concurrentJobs: 640,
      maxPoolSize: CONNECTIONS,
      pollInterval: 500,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  };
  const utils = await makeWorkerUtils({ preset });
  await utils.migrate();
  await run({ preset, taskList: { deliver: (payload) => send(payload as Delivery) } });
  const add: Queue['add'] = (deliveries) =>
    utils.addJobs(deliveries.map((payload) => ({ identifier: 'deliver', payload, maxAttempts: ATTEMPTS })));
  return { add, addIsolated: add, left: 'select exists (select from graphile_worker.jobs) as left' };
};

const queue = await (library === 'pg-boss' ? startPgBoss() : startGraphileWorker());

const eventOf = (n: number) => ({
  event_id: `evt_session_${randomUUID()}`,
  body: JSON.stringify({ data: { session_id: randomUUID(), custom: { n, label: LABEL } } }),
});

/** Each session's deliveries are written together, in one statement. */
const addSessions = async (sessions: number): Promise<void> => {
  let next = 0;
  const writer = async (): Promise<void> => {
    for (let n = next++; n < sessions; n = next++) {
      const first = (n * OF_A_SESSION) % urls.length;
      await queue.add(urls.slice(first, first + OF_A_SESSION).map((url) => ({ url, ...eventOf(n) })));
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
};

const settled = async (): Promise<void> => {
  while ((await pool.query(queue.left)).rows[0].left) await pause(POLL_MS);
};

const besideHanging = (rate: number, total: number): Promise<Map<number, number>> =>
  pace(rate, total, (n) =>
    queue.addIsolated([
      { url: hanging, ...eventOf(n) },
      { url: urls[0] as string, ...eventOf(n) },
    ]),
  );

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

process.stdout.write(`${JSON.stringify({ pid: postmasterOf(folder) })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line) as { sessions: number } | { rate: number; total: number } | object;
  if ('sessions' in asked) {
    await addSessions(asked.sessions);
  } else if ('rate' in asked) {
    const acknowledged = [...(await besideHanging(asked.rate, asked.total))];
    process.stdout.write(`${JSON.stringify({ acknowledged })}\n`);
  } else {
    await settled();
    process.stdout.write('{}\n');
  }
}
// PostgreSQL still runs: the bench ends it when it removes the folder.
process.exit(0);
