/**
 * Generates load in a separate process. Argument: a `LoadPlan`. Prints `{}` when the measured time begins and a
 * `LoadResult` at its end. A general tool such as autocannon needs more CPU for a request than the bare route does,
 * so that the rate would be the tool's own, and it paces a constant rate in bursts of a second.
 */
import { type Connection, openConnection } from './support/http-connection.ts';
import type { LoadPlan, LoadResult } from './support/load-plan.ts';
import { requestsOf } from './support/request-texts.ts';
import { percentile } from './support/statistics.ts';

const plan = JSON.parse(process.argv[2] ?? '') as LoadPlan;
const TICK_MS = 1;
const LAST_ANSWERS_MS = 5_000;

let sent = 0;
/** Responses with another status than expected, by status. */
const unexpected: Record<number, number> = {};
let measuring = false;
let over = false;
const latencies: number[] = [];
const idle: Connection[] = [];
/** The due times of requests for which no connection was free. */
const waiting: number[] = [];
const sentAt = new Map<Connection, number>();

const requestOf = requestsOf(plan);

const send = (connection: Connection, dueAt: number): void => {
  const request = requestOf(sent);
  sent += 1;
  sentAt.set(connection, dueAt);
  connection.send(request);
};

const answered = (connection: Connection, status: number): void => {
  const now = performance.now();
  if (status !== plan.expect) unexpected[status] = (unexpected[status] ?? 0) + 1;
  else if (measuring) latencies.push(now - (sentAt.get(connection) ?? now));
  sentAt.delete(connection);
  const due = plan.rate === undefined ? now : waiting.shift();
  if (over || due === undefined) idle.push(connection);
  else send(connection, due);
};

/** Sends the due requests, evenly spaced as far as the timer allows. */
const pace = (rate: number): void => {
  const startedAt = performance.now();
  let due = 0;
  const tick = (): void => {
    if (over) return;
    const now = performance.now();
    for (const until = ((now - startedAt) * rate) / 1_000; due < until; due += 1) {
      const free = idle.shift();
      if (free) send(free, now);
      else waiting.push(now);
    }
    setTimeout(tick, TICK_MS);
  };
  tick();
};

const pause = (seconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

/** Fewer connections at a low rate, so that none is idle for long: a server closes idle connections. */
const count = Math.min(plan.connections, Math.ceil(plan.rate ?? plan.connections));

const connectAll = (): Promise<void> =>
  new Promise((resolve) => {
    const opened = (connection: Connection): void => {
      if (idle.push(connection) === count) resolve();
    };
    for (let n = 0; n < count; n += 1) openConnection(plan.port, opened, answered);
  });

const lastAnswers = async (connections: readonly Connection[]): Promise<void> => {
  const deadline = performance.now() + LAST_ANSWERS_MS;
  while (sentAt.size > 0 && performance.now() < deadline) await pause(0.01);
  for (const connection of connections) connection.destroy();
};

await connectAll();
const connections = [...idle];
if (plan.rate === undefined) for (const connection of idle.splice(0)) send(connection, performance.now());
else pace(plan.rate);
await pause(plan.warmUpSeconds);

process.stdout.write('{}\n');
measuring = true;
const begin = performance.now();
const cpuBefore = process.cpuUsage();
await pause(plan.seconds);
measuring = false;
over = true;
const { user, system } = process.cpuUsage(cpuBefore);
const seconds = (performance.now() - begin) / 1_000;
const sorted = Float64Array.from(latencies);
const result: LoadResult = {
  answers: latencies.length,
  seconds,
  p50: percentile(sorted, 0.5),
  p99: percentile(sorted, 0.99),
  unexpected,
  sent,
  ownCpu: (user + system) / 1e6,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
await lastAnswers(connections);
