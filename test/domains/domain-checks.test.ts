import { randomUUID } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createDomainCommands,
  createNamesBatcher,
  createSlotsBatcher,
  type DomainCommands,
} from '../../commands/domains/manage-domains.ts';
import { createTrackerCommands } from '../../commands/trackers/manage-trackers.ts';
import { domainStream } from '../../domain/domains/hostname.ts';
import { domainSlotsStream } from '../../domain/domains/slots.ts';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import {
  type DomainCheckOptions,
  hasToken,
  startDomainChecks,
} from '../../processors/domains/check-domains.ts';
import { keepDomains } from '../../processors/domains/keep-domains.ts';
import { domains } from '../../projections/domains/domains.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { trackers } from '../../projections/trackers/trackers.ts';
import { SERVICE_HOST, startTestDns, type TestDns } from '../support/domains.ts';
import { eventually } from '../support/eventually.ts';
import { startProcessor } from '../support/leading.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const HOSTNAME = 'visits.example.com';
const tokenOf = (hostname: string, partnerId: string) => `token of ${partnerId} for ${hostname}`;
const PARTNER = randomUUID();

let stack: TestStack;
let dns: TestDns;
let commands: DomainCommands;
let outcomes: string[];
let running: { stop(): Promise<void> }[];

beforeEach(async () => {
  dns = await startTestDns();
  stack = await startTestStack();
  stack.project([trackers, domains]);
  outcomes = [];
  running = [];
  commands = commandsOf();
});
afterEach(async () => {
  for (const one of running) await one.stop();
  await stack.close();
  dns.close();
});

/** Watches domains as one process does, with its own cache. */
const commandsOf = () =>
  createDomainCommands({
    store: stack.store,
    ownHosts: [SERVICE_HOST],
    trackerRefusal: async () => null,
    isFull: async () => false,
    isProven: (hostname, partnerId) =>
      hasToken(dns.resolver, hostname, tokenOf(hostname, partnerId), AbortSignal.timeout(2_000)),
  });
const keep = () => {
  const { store, pool, clock } = stack;
  running.push(startProcessor(keepDomains({ store, pool, clock }), stack));
};
const startChecks = (over: Partial<DomainCheckOptions> = {}) => {
  const { store, pool, clock, log } = stack;
  const looks = startDomainChecks({
    store,
    pool,
    clock,
    log,
    serviceHost: SERVICE_HOST,
    tokenOf,
    newResolver: async () => {
      const resolver = new Resolver({ timeout: 150, tries: 1 });
      resolver.setServers([dns.address]);
      return resolver;
    },
    onCheck: (outcome) => outcomes.push(outcome),
    ...over,
  });
  // The clock of the test moves without a notification, so this polls.
  const nudging = setInterval(looks.nudge, 100);
  running.push({
    stop: () => {
      clearInterval(nudging);
      return looks.stop();
    },
  });
};
const claim = async (tracker: string, hostname = HOSTNAME, by = commands) => {
  const claimed = await by.claim({ partner_id: PARTNER, tracker_id: tracker }, hostname, stack.context());
  if (!claimed.ok) throw new Error(claimed.refusal);
  return claimed.value.domain;
};
const stateOf = async (hostname = HOSTNAME) => {
  const [row] = await stack.rows(
    'select status, last_error, tracker_id from read.domain where hostname = $1',
    [hostname],
  );
  return row ?? null;
};
const isIn = (status: string, last_error: string | null) =>
  eventually(
    `it is ${status} with ${last_error}`,
    () => stateOf(),
    (row) => row?.status === status && row.last_error === last_error,
  );
/** Moves the clock and waits for a check after it. */
const advanceUntilChecked = async (ms: number, outcome: string) => {
  const before = outcomes.length;
  stack.clock.advance(ms);
  await eventually('the domain was checked', () => outcomes.length > before);
  expect(outcomes.at(-1)).toBe(outcome);
};
const eventsOf = async (stream: string): Promise<RecordedEvent[]> => {
  const all: RecordedEvent[] = [];
  for await (const event of stack.store.readStream(stream)) all.push(event);
  return all;
};
const typesOf = async (stream: string) =>
  (await eventsOf(stream)).map(({ type }) => type.replace(/^domains\.(.*)\.v1$/, '$1'));
const dueIn = async (): Promise<number | null> => {
  const [row] = await stack.rows('select due_at from work.domain_look');
  const due = row?.due_at as Date | null | undefined;
  return due ? due.getTime() - stack.clock.now() : null;
};

describe('a claimed domain', () => {
  it('becomes active once it points to the service and fails after three days of not pointing to it', async () => {
    keep();
    startChecks();
    await claim(randomUUID());
    await isIn('pending', 'no_such_name');
    dns.says(HOSTNAME, ['elsewhere.example.com']);
    await advanceUntilChecked(MINUTE, 'points_elsewhere');
    dns.says(HOSTNAME, [`${SERVICE_HOST.toUpperCase()}.`]);
    await advanceUntilChecked(MINUTE, 'points_here');
    await isIn('active', null);
    await eventually('the domain is checked daily', dueIn, (ms) => ms === DAY);
    // A check with an unchanged result appends no event.
    const before = await typesOf(domainStream(HOSTNAME));
    await advanceUntilChecked(DAY, 'points_here');
    expect(await typesOf(domainStream(HOSTNAME))).toEqual(before);

    dns.says(HOSTNAME, 'silence');
    await advanceUntilChecked(DAY, 'dns_timeout');
    await isIn('active', 'dns_timeout');
    await eventually('the domain is checked hourly', dueIn, (ms) => ms === HOUR);
    dns.says(HOSTNAME, 'SERVFAIL');
    await advanceUntilChecked(2 * DAY, 'dns_error');
    await isIn('active', 'dns_error');
    await advanceUntilChecked(DAY, 'dns_error');
    await isIn('failed', 'dns_error');
    await eventually('no check is running', dueIn, (ms) => ms === null);

    await claim((await stateOf())?.tracker_id as string);
    dns.says(HOSTNAME, [SERVICE_HOST]);
    await isIn('active', null);
    expect(await typesOf(domainStream(HOSTNAME))).toEqual([
      ...['DomainClaimed', 'DomainLookChanged', 'DomainLookChanged', 'DomainActivated'],
      ...['DomainLookChanged', 'DomainLookChanged', 'DomainFailed', 'DomainClaimed', 'DomainActivated'],
    ]);
  });

  it('fails after seven days in which it never pointed to the service', async () => {
    keep();
    startChecks();
    dns.says(HOSTNAME, []);
    await claim(randomUUID());
    await isIn('pending', 'no_cname');
    await advanceUntilChecked(7 * DAY - MINUTE, 'no_cname');
    await eventually('the last look is in time', dueIn, (ms) => ms === MINUTE);
    await advanceUntilChecked(MINUTE, 'no_cname');
    await isIn('failed', 'no_cname');
  });

  it('is checked once by several workers', async () => {
    keep();
    for (let n = 0; n < 4; n += 1) startChecks();
    dns.says(HOSTNAME, [SERVICE_HOST]);
    await claim(randomUUID());
    await isIn('active', null);
    for (let day = 1; day <= 5; day += 1) await advanceUntilChecked(DAY, 'points_here');
    expect(outcomes).toHaveLength(6);
    expect(dns.questions).toHaveLength(6);
  });

  it('keeps what a rebuild of the read model needs', async () => {
    keep();
    startChecks();
    dns.says(HOSTNAME, [SERVICE_HOST]);
    await claim(randomUUID());
    await isIn('active', null);
    dns.says(HOSTNAME, 'NXDOMAIN');
    await advanceUntilChecked(DAY, 'no_such_name');
    await isIn('active', 'no_such_name');
    const all = () => stack.rows('select * from read.domain');
    const before = await all();
    const { store, url } = stack;
    await rebuild({ store, url, projections: [domains] });
    expect(await all()).toEqual(before);
    // The time since which it has been missed survives as well.
    await advanceUntilChecked(3 * DAY, 'no_such_name');
    await isIn('failed', 'no_such_name');
  });
});

describe('an operation over two streams', () => {
  const takeSlot = async (tracker: string, domain_id = randomUUID(), hostname = HOSTNAME) => {
    const command = { type: 'Take', tracker_id: tracker, partner_id: PARTNER, domain_id, hostname } as const;
    const at = stack.clock.now();
    const slots = createSlotsBatcher(stack.store);
    await slots.submitCommand(domainSlotsStream(tracker), { ...command, at }, stack.context(), () => null);
    return domain_id;
  };
  it('is completed when a slot was taken and the claim never followed', async () => {
    const tracker = randomUUID();
    const id = await takeSlot(tracker);
    keep();
    await eventually(
      'it is claimed',
      () => stateOf(),
      (row) => row?.tracker_id === tracker,
    );
    expect((await claim(tracker)).domain_id).toBe(id);
  });

  it('is undone when a slot was taken for a domain that another tracker holds', async () => {
    const [owner, late] = [randomUUID(), randomUUID()];
    await claim(owner);
    await takeSlot(late);
    keep();
    await eventually(
      'its place is given back',
      () => typesOf(domainSlotsStream(late)),
      (types) => types.at(-1) === 'PlaceFreed',
    );
    await stack.caughtUp([domains]);
    expect((await stateOf())?.tracker_id).toBe(owner);
  });

  it('is completed when a slot was released and the domain was not', async () => {
    const tracker_id = randomUUID();
    const { domain_id } = await claim(tracker_id);
    const free = { type: 'Free', tracker_id, domain_id, at: stack.clock.now() } as const;
    const slots = createSlotsBatcher(stack.store);
    await slots.submitCommand(domainSlotsStream(tracker_id), free, stack.context(), () => null);
    await stack.caughtUp([domains]);
    expect(await stateOf()).not.toBeNull();
    keep();
    await eventually(
      'it is gone',
      () => stateOf(),
      (row) => row === null,
    );
    await eventually(
      'no check is running',
      () => stack.rows('select from work.domain_look'),
      (rows) => rows.length === 0,
    );
  });

  it('is undone when the claim followed the deletion of its tracker', async () => {
    const { store } = stack;
    const ofTrackers = createTrackerCommands(store, 10);
    const wanted = { name: 'a site', origins: ['https://www.example.com'], customer_reference: null };
    const made = await ofTrackers.create(PARTNER, wanted, stack.context());
    if (!made.ok) throw new Error(made.refusal);
    const { tracker_id } = made.value.tracker;
    await claim(tracker_id, 'first.example.com');
    const late = await takeSlot(tracker_id);
    await ofTrackers.delete(PARTNER, tracker_id, stack.context());
    keep();
    await eventually(
      'the first is given up',
      () => stateOf('first.example.com'),
      (row) => row === null,
    );
    const command = { type: 'Claim', domain_id: late, hostname: HOSTNAME } as const;
    const whose = { tracker_id, partner_id: PARTNER, proven: false, at: stack.clock.now() };
    const names = createNamesBatcher(store);
    await names.submitCommand(domainStream(HOSTNAME), { ...command, ...whose }, stack.context(), () => null);
    await eventually(
      'the late one is given up',
      () => typesOf(domainStream(HOSTNAME)),
      (types) => types.at(-1) === 'DomainReleased',
    );
    const more = await commands.claim(
      { partner_id: PARTNER, tracker_id },
      'more.example.com',
      stack.context(),
    );
    expect(more).toEqual({ ok: false, refusal: 'tracker_deleted' });
  });

  it('keeps to ten domains over two processes', async () => {
    const tracker_id = randomUUID();
    const both = [commandsOf(), commandsOf()];
    const claims = await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        both[n % 2]?.claim({ partner_id: PARTNER, tracker_id }, `s${n}.example.com`, stack.context()),
      ),
    );
    expect(claims.filter((claimed) => claimed?.ok)).toHaveLength(10);
    for (const claimed of claims)
      if (!claimed?.ok) expect(claimed).toMatchObject({ refusal: 'domain_limit' });
  });
});
