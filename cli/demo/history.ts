/** The demo's customer and their last thirty days, written by the product's own API and commands as they come about. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { ownContext } from '../../commands/handle.ts';
import { createKey, createPartner, newApiKey } from '../../commands/partners/manage-partner.ts';
import { createUser } from '../../commands/partners/manage-user.ts';
import { inChunks } from '../../domain/kernel/chunks.ts';
import type { Result } from '../../domain/kernel/decider.ts';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { DEFAULT_LIMITS } from '../../domain/partners/partner.ts';
import { nextTurn } from '../../platform/clock/waiting.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { createCountries } from '../../platform/country.ts';
import { hashPassword, newPassword } from '../../platform/crypto/passwords.ts';
import type { Logger } from '../../platform/telemetry/log.ts';
import { setInitialPassword } from '../../processors/partners/passwords.ts';
import { createPastAttempts } from './attempts.ts';
import { inventOrganisations, type Organisation, pick } from './organisations.ts';
import { openPast, type Past } from './past.ts';
import { addressOf, isOutage, type Period, PRICING, planVisits, type Visit } from './visits.ts';

const DAYS = 29;
const SITES = [
  ['Product website', 'https://www.fernhill.example', 'fernhill-www'],
  ['Pricing website', 'https://pricing.fernhill.example', 'fernhill-pricing'],
  ['Documentation', 'https://docs.fernhill.example', 'fernhill-docs'],
] as const;
/** Visits that are nearer to each other are captured side by side. */
const TOGETHER_MS = HOUR;
/** Below a key's limit. */
const LOOKUPS_A_SECOND = 20;

/**
 * Writes the history into the stores of the demo's `env`. `site`: where its local pages and its receiver of webhooks will be.
 * @returns what the demo prints, and what its pages need
 */
export async function writeHistory(env: Readonly<Record<string, string>>, site: string, log: Logger) {
  const countries = await createCountries(undefined, log);
  const organisations = inventOrganisations(countries);
  countries.close();
  const directory = organisations.map(({ record }) => `${JSON.stringify(record)}\n`);
  writeFileSync(env.ENRICHMENT_DIRECTORY as string, directory.join(''));
  const now = Date.now();
  const period = { start: now - DAYS * DAY, now };
  const past = await openPast(loadConfig(env), log, period.start);
  try {
    const customer = await welcome(past, site);
    await live(past, customer, organisations, period);
    return { organisations, trackers: customer.trackers, user: 'Ada', password: customer.password };
  } finally {
    await past.close();
  }
}

function must<T>(result: Result<T, string>): T {
  if (!result.ok) throw new Error(`the demo's history was refused: ${result.refusal}`);
  return result.value;
}

type Customer = Awaited<ReturnType<typeof welcome>>;

/** The customer's first hour: an account, users, keys, websites and endpoints. */
async function welcome({ runtime, call, caughtUp, advanceTo }: Past, site: string) {
  const { store, clock, pool } = runtime;
  const advance = () => advanceTo(clock.now() + MINUTE);
  const context = () => ownContext(clock);
  const { partner_id } = must(await createPartner(store, 'Fernhill Software', context()));
  const { user_id } = must(await createUser(store, { partner_id, name: 'Ada' }, context()));
  const password = newPassword();
  const hash = await hashPassword(password);
  await setInitialPassword(pool, { userId: user_id, hash, at: clock.now() });
  const makeKey = async (name: string, limits = {}) => {
    advance();
    const key = { partner_id, name, api_key: newApiKey(), by: 'operator' } as const;
    const made = await createKey(store, { ...key, limits: { ...DEFAULT_LIMITS, ...limits } }, context());
    return must(made).api_key;
  };
  const [crm, form] = [await makeKey('CRM sync'), await makeKey('Sign-up form')];
  const notebook = await makeKey('Data team notebook', { new_enrichments_per_day: 60 });
  await caughtUp();
  const make = async (path: string, body: object): Promise<string> => {
    advance();
    return (await call(crm, 'POST', path, { body })).id;
  };
  const trackers: string[] = [];
  for (const [name, origin, customer_reference] of SITES)
    trackers.push(await make('/v1/trackers', { name, origins: [origin, site], customer_reference }));
  await make('/v1/webhooks', { name: 'CRM', url: `${site}/crm`, events: ['reveal.completed'] });
  const ofPricing = { tracker_id: trackers[PRICING], events: ['session.created'] };
  const endpoint = await make('/v1/webhooks', { name: 'Sales chat', url: `${site}/chat`, ...ofPricing });
  return { partner_id, user_id, password, crm, form, notebook, trackers, endpoint };
}

/** Lets everything happen in the order of its time. */
async function live(past: Past, customer: Customer, organisations: readonly Organisation[], period: Period) {
  const { runtime, advanceTo, caughtUp } = past;
  const { store, clock } = runtime;
  const { start, now } = period;
  const { partner_id, user_id, form, notebook, endpoint } = customer;
  const isDown = (webhookId: string, at: number) => webhookId === endpoint && isOutage(period, at);
  const attempts = createPastAttempts(past, isDown);
  const happenings: { readonly at: number; readonly run: () => Promise<unknown> }[] = [];
  const happen = (at: number, run: () => Promise<unknown>) => void happenings.push({ at, run });
  const reveal = createReveals(past, customer);
  for (let day = Math.floor(start / DAY) * DAY; day < now; day += DAY) {
    const isWeekend = new Date(day).getUTCDay() % 6 === 0;
    happen(day + MINUTE, past.runJobs);
    happen(day + 10.1 * HOUR, () => lookUp(past, form, organisations, isWeekend ? 3 : 9));
    // The first day counts as a working day: there is a bill of the month that it may be the last of.
    if (isWeekend && day > start) continue;
    happen(day + 8.2 * HOUR, () => reveal('crm', 12));
    happen(day + 14.5 * HOUR, () => reveal('user', 4));
  }
  for (let week = 0; week < 3; week += 1)
    happen(now - week * 7 * DAY - 40 * MINUTE, () => lookUp(past, notebook, organisations, 55));
  const ben = { partner_id, name: 'Ben', role: 'read-only' } as const;
  const byAda = () => ({ ...ownContext(clock, partner_id), userId: user_id });
  happen(now - 4 * DAY, async () => must(await createUser(store, ben, byAda())));
  happen(now - MINUTE, async () => undefined);

  const captures: Promise<unknown>[] = [];
  const settle = async (): Promise<void> => {
    await Promise.all(captures.splice(0));
    await caughtUp();
    await attempts.readQueued();
  };
  const visits = planVisits(organisations, period).values();
  let visit = visits.next().value;
  let together = 0;
  for (const { at, run } of happenings.sort((a, b) => a.at - b.at)) {
    if (at < start + HOUR || at > now - MINUTE) continue;
    for (; visit !== undefined && visit.at <= at; visit = visits.next().value) {
      await attempts.makeUntil(visit.at);
      if (visit.at > together) {
        await Promise.all(captures.splice(0));
        await runtime.evidence.flush();
        together = visit.at + TOGETHER_MS;
      }
      advanceTo(visit.at);
      captures.push(capture(past, customer.trackers, visit));
      // The server reads the clock as it takes the request.
      await nextTurn();
      if (visit.isFirstOfTab && visit.site === PRICING) await settle();
    }
    await settle();
    await attempts.makeUntil(at);
    advanceTo(at);
    await run();
    await settle();
  }
  await attempts.makeUntil(now);
  advanceTo(Date.now());
  await caughtUp();
}

const capture = ({ call }: Past, trackers: readonly string[], { site, address, token, custom }: Visit) =>
  call(null, 'POST', '/tracking/collect', {
    headers: { origin: SITES[site]?.[1] ?? '', 'content-type': 'text/plain', 'x-forwarded-for': address },
    body: JSON.stringify({ tracker_id: trackers[site], token, visit_id: randomUUID(), custom }),
  });

/** Returns what reads the feed on from where it was, and reveals some of the new sessions: by a key, or by a user. */
function createReveals(past: Past, { crm, partner_id, user_id }: Customer) {
  let cursor = '';
  return async (by: 'crm' | 'user', count: number): Promise<void> => {
    const revealing: Promise<unknown>[] = [];
    const seen: { readonly session_id: string }[] = [];
    for (let hasMore = true; hasMore; ) {
      const page = await past.call(crm, 'GET', `/v1/sessions?limit=100${cursor}`);
      seen.push(...page.sessions);
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
      hasMore = page.has_more;
    }
    for (const { session_id } of seen.filter(() => Math.random() < count / seen.length)) {
      past.advanceTo(past.runtime.clock.now() + 200);
      const headers = { 'idempotency-key': randomUUID() };
      const byKey = () => past.call(crm, 'POST', `/v1/sessions/${session_id}/reveal`, { headers });
      revealing.push(by === 'crm' ? byKey() : past.reveal(partner_id, user_id, session_id));
      await nextTurn();
    }
    await Promise.all(revealing);
    await past.enriched();
  };
}

/** A key asks for addresses: each by POST, and by GET a moment later. */
async function lookUp(past: Past, key: string, organisations: readonly Organisation[], count: number) {
  const asked = Array.from({ length: count }, () => addressOf(pick(organisations), 40));
  const inTurn = async (call: (ip: string) => Promise<unknown>): Promise<void> => {
    for (const some of inChunks(asked, LOOKUPS_A_SECOND)) {
      past.advanceTo(past.runtime.clock.now() + 1_000);
      await Promise.all(some.map(call));
    }
    await past.enriched();
  };
  await inTurn((ip) => past.call(key, 'POST', '/v1/lookup', { body: { ip } }));
  await inTurn((ip) => past.call(key, 'GET', `/v1/lookup?ip=${ip}`));
}
