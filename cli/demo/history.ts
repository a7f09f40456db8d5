/** The demo's customer and their last thirty days, written by the product's own API and commands as if they had been lived. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { ownContext } from '../../commands/handle.ts';
import { createKey, createPartner, newApiKey } from '../../commands/partners/manage-partner.ts';
import { acceptInvitation, invitationDigest, invite } from '../../commands/partners/manage-team.ts';
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
import { findInvitation } from '../../queries/partners/team.ts';
import { inventOrganisations, type Organisation, seededRandom } from './cast.ts';
import { createPastAttempts } from './deliveries.ts';
import { openPast, type Past } from './past.ts';
import { DAYS, outageBefore, type PlannedVisit, planVisits } from './plan.ts';

const CUSTOMER = 'Fernhill Software';
const SITES = [
  { name: 'Product website', origin: 'https://www.fernhill.example', reference: 'fernhill-www' },
  { name: 'Pricing website', origin: 'https://pricing.fernhill.example', reference: 'fernhill-pricing' },
  { name: 'Documentation', origin: 'https://docs.fernhill.example', reference: 'fernhill-docs' },
] as const;
const KEYS = { crm: 'CRM sync', form: 'Sign-up form', notebook: 'Data team notebook' } as const;
const SEED = 20_261_129;
/** Captures that wait for the store together. */
const AT_ONCE = 64;
const REVEALS_AT_ONCE = 9;
const LOOKUPS_A_SECOND = 20;

export interface Written {
  readonly user: string;
  readonly password: string;
  /** Tracker ids, in the order of the websites. */
  readonly trackers: readonly string[];
  /** An address of every organisation, with its name. */
  readonly visitors: readonly { readonly address: string; readonly name: string }[];
}

export interface Places {
  /** The environment of the demo's service. */
  readonly env: Readonly<Record<string, string>>;
  readonly directoryFile: string;
  /** Origin of the local page, and the URL of the local receiver. */
  readonly pageOrigin: string;
  readonly receiver: string;
}

interface Customer {
  readonly keys: Readonly<Record<keyof typeof KEYS, string>>;
  readonly trackers: readonly string[];
  readonly crmEndpoint: string;
  readonly partnerId: string;
  readonly ownerId: string;
  readonly password: string;
}

export async function writeHistory(places: Places, log: Logger): Promise<Written> {
  const random = seededRandom(SEED);
  const countries = await createCountries(undefined, log);
  const organisations = inventOrganisations(countries, random);
  countries.close();
  writeFileSync(
    places.directoryFile,
    organisations.map(({ record }) => `${JSON.stringify(record)}\n`).join(''),
  );
  const now = Date.now();
  const start = now - DAYS * DAY;
  const past = await openPast(loadConfig(places.env), log, start);
  try {
    const customer = await welcome(past, places);
    await live(past, customer, organisations, { start, now }, random);
    past.advanceTo(Date.now());
    return {
      user: 'Ada',
      password: customer.password,
      trackers: customer.trackers,
      visitors: organisations.map(({ addresses, name }) => ({ address: addresses[0] as string, name })),
    };
  } finally {
    await past.close();
  }
}

const must = <T>(result: Result<T, string>): T => {
  if (!result.ok) throw new Error(`the demo's history was refused: ${result.refusal}`);
  return result.value;
};

/** The customer's first day: an account, keys, websites and endpoints. */
async function welcome(past: Past, { pageOrigin, receiver }: Places): Promise<Customer> {
  const { store, clock, pool } = past.runtime;
  const context = () => ownContext(clock);
  const { partner_id: partnerId } = must(await createPartner(store, CUSTOMER, context()));
  const { user_id: ownerId } = must(
    await createUser(store, { partner_id: partnerId, name: 'Ada' }, context()),
  );
  const password = newPassword();
  const hash = await hashPassword(password);
  await setInitialPassword(pool, { userId: ownerId, hash, at: clock.now() });
  const makeKey = async (name: string): Promise<string> => {
    const wanted = { partner_id: partnerId, name, limits: DEFAULT_LIMITS, api_key: newApiKey() };
    return must(await createKey(store, { ...wanted, by: 'operator' }, context())).api_key;
  };
  const keys = {
    crm: await makeKey(KEYS.crm),
    form: await makeKey(KEYS.form),
    notebook: await makeKey(KEYS.notebook),
  };
  await past.caughtUp();
  const trackers: string[] = [];
  for (const { name, origin, reference } of SITES) {
    past.advanceTo(clock.now() + MINUTE);
    const body = { name, origins: [origin, pageOrigin], customer_reference: reference };
    trackers.push((await past.call(keys.crm, 'POST', '/v1/trackers', { body })).id);
  }
  const endpoint = async (body: object): Promise<string> =>
    (await past.call(keys.crm, 'POST', '/v1/webhooks', { body })).id;
  const events = ['session.created', 'reveal.completed'];
  const crmEndpoint = await endpoint({ name: 'CRM', url: `${receiver}/crm`, events });
  const [, pricing] = trackers;
  await endpoint({
    name: 'Sales chat',
    url: `${receiver}/chat`,
    events: ['session.created'],
    tracker_id: pricing,
  });
  await past.caughtUp();
  return { keys, trackers, crmEndpoint, partnerId, ownerId, password };
}

interface Happening {
  readonly at: number;
  readonly run: () => Promise<unknown>;
}

/** Lets everything happen in the order of its time. */
async function live(
  past: Past,
  customer: Customer,
  organisations: readonly Organisation[],
  { start, now }: { readonly start: number; readonly now: number },
  random: () => number,
): Promise<void> {
  const { runtime } = past;
  const isOutage = outageBefore(now);
  const recordAttempts = createPastAttempts({
    ...runtime,
    retryBaseMs: runtime.config.RETRY_BASE_SECONDS * 1_000,
    isDown: (webhookId, at) => webhookId === customer.crmEndpoint && isOutage(at),
    random,
  });
  let captures: Promise<unknown>[] = [];
  const settle = async (): Promise<void> => {
    await Promise.all(captures);
    captures = [];
    await past.caughtUp();
    await recordAttempts(runtime.clock.now());
  };

  const visits = planVisits(organisations, { start, now }, random);
  const happenings: Happening[] = [];
  const everyDay = (hour: number, run: (day: number) => Promise<unknown>, weekdaysOnly = true): void => {
    for (let day = 0; day <= DAYS; day += 1) {
      const at = Math.floor(start / DAY) * DAY + day * DAY + hour * HOUR;
      const weekday = new Date(at).getUTCDay();
      if (at < start + HOUR || at > now - MINUTE || (weekdaysOnly && weekday % 6 === 0)) continue;
      happenings.push({ at, run: () => run(day) });
    }
  };
  const feed = { cursor: '' };
  everyDay(8.25, () => revealSome(past, customer, feed, random, settle));
  everyDay(14.5, () => revealSome(past, customer, feed, random, settle));
  everyDay(10.1, () => lookUp(past, customer.keys.form, organisations, 14, random));
  everyDay(11.6, (day) =>
    day % 7 === 2 ? lookUp(past, customer.keys.notebook, organisations, 60, random) : Promise.resolve(),
  );
  everyDay(0.02, past.dailyJobs, false);
  happenings.push({ at: start + 3 * DAY, run: () => inviteColleague(past, customer) });
  happenings.sort((a, b) => a.at - b.at);

  const nextVisit = visits.values();
  let visit = nextVisit.next().value;
  for (const happening of [...happenings, { at: now - MINUTE, run: async () => undefined }]) {
    for (; visit !== undefined && visit.at <= happening.at; visit = nextVisit.next().value) {
      past.advanceTo(visit.at);
      captures.push(capture(past, customer.trackers, visit));
      await nextTurn();
      if (captures.length >= AT_ONCE) await Promise.all(captures.splice(0));
    }
    past.advanceTo(happening.at);
    await settle();
    await happening.run();
  }
  await settle();
}

function capture(past: Past, trackers: readonly string[], visit: PlannedVisit): Promise<unknown> {
  const { token, address, labels, site } = visit;
  return past.call(null, 'POST', '/tracking/collect', {
    headers: {
      origin: SITES[site]?.origin ?? '',
      'content-type': 'text/plain',
      'x-forwarded-for': address,
    },
    body: JSON.stringify({ tracker_id: trackers[site], token, visit_id: randomUUID(), custom: labels }),
  });
}

/** The CRM reads the feed on from where it was, and reveals some of the new sessions. */
async function revealSome(
  past: Past,
  { keys: { crm } }: Customer,
  feed: { cursor: string },
  random: () => number,
  settle: () => Promise<void>,
): Promise<void> {
  const seen: string[] = [];
  for (let hasMore = true; hasMore; ) {
    const cursor = feed.cursor === '' ? '' : `&cursor=${encodeURIComponent(feed.cursor)}`;
    const page = await past.call(crm, 'GET', `/v1/sessions?limit=100${cursor}`);
    seen.push(...page.sessions.map((session: { session_id: string }) => session.session_id));
    feed.cursor = page.next_cursor;
    hasMore = page.has_more;
  }
  const chosen = seen.filter(() => random() < REVEALS_AT_ONCE / seen.length);
  const { clock } = past.runtime;
  const revealing: Promise<unknown>[] = [];
  for (const sessionId of chosen) {
    past.advanceTo(clock.now() + 250);
    const headers = { 'idempotency-key': randomUUID() };
    revealing.push(past.call(crm, 'POST', `/v1/sessions/${sessionId}/reveal`, { headers }));
    await nextTurn();
  }
  await Promise.all(revealing);
  await past.caughtUp();
  past.advanceTo(clock.now() + 600);
  await past.enriched();
  await settle();
}

/** A key asks for addresses: each by POST, and by GET a moment later. */
async function lookUp(
  past: Past,
  key: string,
  organisations: readonly Organisation[],
  count: number,
  random: () => number,
): Promise<void> {
  const { clock } = past.runtime;
  const asked = Array.from({ length: count }, () => {
    const { addresses } = organisations[Math.floor(random() * organisations.length)] as Organisation;
    return addresses[Math.floor(random() * addresses.length)] as string;
  });
  const inTurn = async (call: (ip: string) => Promise<unknown>): Promise<void> => {
    for (const some of inChunks(asked, LOOKUPS_A_SECOND)) {
      past.advanceTo(clock.now() + 1_000);
      await Promise.all(some.map(call));
    }
    await past.caughtUp();
  };
  await inTurn((ip) => past.call(key, 'POST', '/v1/lookup', { body: { ip } }));
  past.advanceTo(clock.now() + 900);
  await past.enriched();
  await inTurn((ip) => past.call(key, 'GET', `/v1/lookup?ip=${ip}`));
}

async function inviteColleague(past: Past, { partnerId, ownerId }: Customer): Promise<void> {
  const { store, clock, db } = past.runtime;
  const invitation = { partner_id: partnerId, role: 'read-only', note: 'Ben, sales' } as const;
  const byOwner = { ...ownContext(clock, partnerId), userId: ownerId };
  const { token } = must(await invite(store, invitation, byOwner));
  await past.caughtUp();
  past.advanceTo(clock.now() + 20 * MINUTE);
  const found = await findInvitation(db, invitationDigest(token));
  if (found === null) throw new Error('the invitation is not there');
  const { invitation_id, partner_id, role } = found;
  must(await acceptInvitation(store, { invitation_id, partner_id, role, name: 'Ben' }, ownContext(clock)));
}
