/** The traffic of a calibration, and the meters of what it costs. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { CONSUMERS } from '../../bin/groups.ts';
import type { Runtime } from '../../bin/runtime.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { projectionGroups } from '../../projections/all.ts';
import type { Installation } from '../installation/installation.ts';
import { type Load, load, type Request } from '../installation/load.ts';
import { makeKey } from '../installation/make-key.ts';
import { GROUPS, type GroupName, type Kind } from './figures.ts';

const SAVED = '20.255.255.255';
const PAGE = 'https://www.example.com';
const SESSIONS = 10;
const CONNECTIONS = 32;
const QUIET_MS = 800;
const POLL_MS = 50;
const LIMIT_MS = 180_000;
const NO_LIMIT = { requests_per_second: 100_000, pending_enrichments: 100_000_000 };

/** Sends requests of a kind. `rate`: of a second. @returns how many were answered */
export type Run = (kind: Kind, rate: number, seconds: number) => Promise<number>;

/** Makes partners, trackers, a saved result, sessions and an endpoint, and returns what sends more of each kind. */
export async function prepare({ runtime, api: { url }, endpoint }: Installation): Promise<Run> {
  const newKey = async () => (await makeKey(runtime, NO_LIMIT, ['partners'])).api_key;
  const [key, notified] = [await newKey(), await newKey()];
  const call = async (method: 'GET' | 'POST', path: string, by: string, body?: object) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${by}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
    return JSON.parse(text);
  };
  const tracker = async (by: string): Promise<string> =>
    (await call('POST', '/v1/trackers', by, { name: 'capacity', origins: [PAGE] })).id;
  const [silent, sending] = [await tracker(key), await tracker(notified)];
  const hook = { name: 'capacity', url: endpoint, events: ['session.created'], tracker_id: sending };
  await call('POST', '/v1/webhooks', notified, hook);
  await call('POST', '/v1/lookup', key, { ip: SAVED });
  await quiet(runtime);

  const requests = requestsOf(key, { silent, sending });
  let first = 0;
  const run = async (kind: Load['request'], expect: number, rate: number, seconds: number) => {
    const plan = {
      url,
      request: kind,
      expect,
      rate,
      seconds,
      connections: CONNECTIONS,
      underWay: CONNECTIONS,
    };
    const answers = await load(plan, first);
    first += answers.length;
    return answers.length;
  };
  await run((number) => requests.visit(number, SAVED), 204, SESSIONS, 1);
  await quiet(runtime);
  const feed = await call('GET', `/v1/sessions?tracker_id=${silent}&limit=${SESSIONS}`, key);
  const sessions: string[] = feed.sessions.map((one: { session_id: string }) => one.session_id);
  const kinds: Readonly<Record<Kind, readonly [Load['request'], number]>> = {
    saved_lookup: [requests.saved, 200],
    new_lookup: [requests.fresh, 202],
    visit: [(number) => requests.visit(number), 204],
    reveal: [(number) => requests.reveal(sessions[number % sessions.length] ?? ''), 200],
    delivery: [(number) => requests.notifiedVisit(number), 204],
  };
  return (kind, rate, seconds) => run(...kinds[kind], rate, seconds);
}

/** Addresses of the block that the directory knows, each once. */
const addressOf = (number: number): string =>
  `20.${(number >> 16) & 127}.${(number >> 8) & 255}.${number & 255}`;

/** Headers that a browser sends beside those of `fetch`. */
const BROWSER = {
  origin: PAGE,
  'content-type': 'text/plain;charset=UTF-8',
  'accept-encoding': 'gzip, deflate, br, zstd',
  'accept-language': 'en-US,en;q=0.9',
  'user-agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36',
};

function requestsOf(key: string, trackers: { readonly silent: string; readonly sending: string }) {
  const authorization = `Bearer ${key}`;
  const visitOf = (tracker_id: string, ip: string): Request => ({
    method: 'POST',
    path: '/tracking/collect',
    headers: { ...BROWSER, 'x-forwarded-for': ip },
    body: JSON.stringify({
      tracker_id,
      token: randomUUID(),
      visit_id: randomUUID(),
      custom: { plan: 'pro', seats: 3 },
    }),
  });
  return {
    saved: (): Request => ({ method: 'GET', path: `/v1/lookup?ip=${SAVED}`, headers: { authorization } }),
    fresh: (number: number): Request => ({
      method: 'POST',
      path: '/v1/lookup',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ ip: addressOf(number) }),
    }),
    visit: (number: number, ip = addressOf(number)) => visitOf(trackers.silent, ip),
    notifiedVisit: (number: number) => visitOf(trackers.sending, addressOf(number)),
    reveal: (session: string): Request => ({
      method: 'POST',
      path: `/v1/sessions/${session}/reveal`,
      headers: { authorization, 'idempotency-key': randomUUID() },
    }),
  };
}

/**
 * Waits until everything that follows from the traffic is done; `left`: enrichments may still wait. @throws Error after three minutes
 */
export async function quiet(
  { store, pool, progress, processed }: Runtime,
  left: 'no work' | 'work may wait' = 'no work',
): Promise<void> {
  const deadline = performance.now() + LIMIT_MS;
  let since = performance.now();
  for (let before: Position | null = null; performance.now() < deadline; await pause(POLL_MS)) {
    const head = await store.head();
    if (head !== before) since = performance.now();
    before = head;
    const reached = await Promise.all([
      progress.reached(CONSUMERS.projections, head, LIMIT_MS),
      processed.reached(CONSUMERS.processors, head, LIMIT_MS),
    ]);
    if (reached.includes(false) || performance.now() - since < QUIET_MS) continue;
    if (left === 'work may wait') return;
    const { rows } = await pool.query('select exists (select from read.enrichment_work) as working');
    if (!rows[0].working) return;
  }
  throw new Error(`read models or processors are still behind after ${LIMIT_MS / 1_000} s`);
}

/** Events between two positions of the log, and how many of them each group applies. */
export async function countEvents(
  store: EventStore,
  after: Position | null,
  until: Position | null,
): Promise<{ events: number; applied: Record<GroupName, number> }> {
  const applied: Record<GroupName, number> = { lookups: 0, visits: 0, webhooks: 0 };
  let events = 0;
  if (until === null || after === until) return { events, applied };
  const reading = new AbortController();
  for await (const batch of store.follow({ after, includeExpired: true, signal: reading.signal })) {
    for (const { type, position } of batch.events) {
      if (position > until) continue;
      events += 1;
      for (const group of GROUPS) if (TYPES[group].has(type)) applied[group] += 1;
    }
    if (batch.position >= until) reading.abort();
  }
  return { events, applied };
}

const typesOf = (group: GroupName): Set<string> =>
  new Set(projectionGroups[group].projections.flatMap(({ types = [] }) => types));
const TYPES = Object.fromEntries(GROUPS.map((group) => [group, typesOf(group)])) as Record<
  GroupName,
  Set<string>
>;
