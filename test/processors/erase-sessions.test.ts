/** Erasures that are killed at any step, and visits and completions that arrive while they run. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { erasureDeps } from '../../bin/erasure.ts';
import { sweepToEnd } from '../../bin/retention.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import { EMPTY_RESULT } from '../../domain/reveals/reveal.ts';
import type { EventStore } from '../../event-store/port.ts';
import { auditBilling } from '../../processors/billing/audit.ts';
import { eraseVisitor, findVisitor, type Wanted } from '../../processors/erase-visitor.ts';
import { allProjections } from '../../projections/all.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { sendSignals, signal } from '../support/signals.ts';
import { codeOf, collect, feed, makeTracker } from '../support/tracking.ts';

class Killed extends Error {}

const RESULT = { ...EMPTY_RESULT, match_type: 'isp', network: { ...EMPTY_RESULT.network, is_isp: true } };
const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;
let tracker: string;
/** Called with each call of the store that changes it, such as `expire tab-…` before and `expired tab-…` after a deletion. */
let onCall: (call: string) => Promise<void> | void = () => undefined;

const hooked = (store: EventStore): EventStore => ({
  ...store,
  append: async (stream, ...rest) => {
    await onCall(`append ${stream}`);
    const appended = await store.append(stream, ...rest);
    await onCall(`appended ${stream}`);
    return appended;
  },
  expire: async (stream, last) => {
    await onCall(`expire ${stream}`);
    await store.expire(stream, last);
    await onCall(`expired ${stream}`);
  },
});

let addresses = 0;
const newAddress = (): string => {
  addresses += 1;
  return `5.9.1.${addresses}`;
};

const visit = async (ip: string, token: string): Promise<string> => {
  await collect(api, tracker, { ip, body: { token } });
  return String((await feed(api, key)).sessions.at(-1)?.session_id);
};
const post = (session: string, idempotencyKey = randomUUID()) =>
  api.inject(key, {
    method: 'POST',
    url: `/v1/sessions/${session}/reveal`,
    headers: { 'idempotency-key': idempotencyKey },
  });
const get = (url: string) => api.inject(key, { method: 'GET', url });
const code = async (url: string) => codeOf(await get(url));
const deps = () => ({
  ...erasureDeps(api.runtime, new AbortController().signal),
  store: hooked(api.runtime.store),
  lateMs: 0,
});
const erase = async (wanted: Wanted) => eraseVisitor(deps(), wanted, await findVisitor(deps(), wanted));
const rebuildAll = async () => {
  const { store, databaseUrl: url } = api.runtime;
  await rebuild({ store, url, projections: allProjections });
  await api.caughtUp();
};
const audit = async () =>
  (await auditBilling(api.runtime, { partnerId: key.partner_id, patienceMs: 10_000 })).report;

/** A visitor with a revealed session and a clue, in a tab and on a day that they share with another visitor. */
const aVisitor = async () => {
  const ip = newAddress();
  await api.post(key, ip);
  await api.settled(key, ip);
  const token = randomUUID();
  const session = await visit(ip, token);
  const other = await visit(newAddress(), token);
  const reveal = String((await post(session)).json().reveal_id);
  await sendSignals(api, [signal(clock.now(), { ip }), signal(clock.now(), { ip: newAddress() })]);
  await api.caughtUp();
  return { ip, token, session, other, reveal };
};

beforeAll(async () => {
  provider.saysOtherwise(aCompany('Acme'));
  api = await startApi({ clock, providers: [provider] });
  key = await api.key();
  tracker = await makeTracker(api, key);
  const payload = { name: 'hooks', url: 'https://hooks.example.com/', events: ['session.created'] };
  await api.inject(key, { method: 'POST', url: '/v1/webhooks', payload });
}, 60_000);
afterAll(() => api.close());

const dyingAt = (step: string): void => {
  let isDead = false;
  onCall = (call) => {
    isDead ||= call.startsWith(step);
    if (isDead) throw new Killed();
  };
};

/** In the order in which an erasure gets there. */
const STEPS = [
  'appended expired-',
  'expired reveal-',
  'appended tab-',
  'expired tab-',
  'appended signals-',
  'appended enrichment-',
];

describe('an erasure that is killed', () => {
  it('is completed by a repeat, wherever it was killed, and though the tables were rebuilt', async () => {
    const { ip, session, other, reveal } = await aVisitor();
    const wanted = { visitor: { ip }, partner_id: null };
    for (const step of STEPS) {
      dyingAt(step);
      await expect(erase(wanted), step).rejects.toBeInstanceOf(Killed);
      onCall = () => undefined;
      if (step !== 'expired tab-') continue;
      // Now the log has neither the session nor its end.
      await rebuildAll();
      expect((await audit()).differences).toEqual([]);
    }
    await erase(wanted);
    await sweepToEnd(api.runtime);
    await api.caughtUp();
    expect(await code(`/v1/sessions/${session}`)).toBe('session_expired');
    expect(await code(`/v1/reveals/${reveal}`)).toBe('reveal_expired');
    expect((await get(`/v1/sessions/${other}`)).statusCode).toBe(200);
    expect((await api.sql.query('select from work.expiring')).rowCount).toBe(0);
    const { rows } = await api.sql.query(
      `select name from eventlog.stream s where name ^@ 'signals-' and not expired`,
    );
    expect(rows).toHaveLength(1);
    const left = { sessions: [], reveals: [], payloads: [], clues: 0, saved_results: 0, enrichments: 0 };
    expect(await findVisitor(deps(), wanted)).toMatchObject(left);
    expect((await audit()).differences).toEqual([]);
  });

  it('still finds receipts that were made while it ran, though their sessions are gone', async () => {
    const ip = newAddress();
    await api.post(key, ip);
    await api.settled(key, ip);
    const session = await visit(ip, randomUUID());
    const wanted = { visitor: { ip }, partner_id: null };
    let late = '';
    onCall = async (call) => {
      if (late !== '' || !call.startsWith('append expired-')) return;
      late = 'is made';
      late = (await post(session)).json().reveal_id;
    };
    const pause = () => Promise.reject(new Killed());
    const found = await findVisitor(deps(), wanted);
    await expect(eraseVisitor({ ...deps(), pause }, wanted, found)).rejects.toThrow(Killed);
    onCall = () => undefined;
    await api.caughtUp();
    expect((await get(`/v1/reveals/${late}`)).statusCode).toBe(200);
    await erase(wanted);
    expect(await code(`/v1/reveals/${late}`)).toBe('reveal_expired');
    expect((await audit()).differences).toEqual([]);
  });
});

describe('an erasure', () => {
  it('keeps a session that begins in the tab while it runs', async () => {
    const { token, session } = await aVisitor();
    let begun = '';
    onCall = async (call) => {
      if (begun !== '' || !call.startsWith('expire tab-')) return;
      begun = 'begins';
      begun = await visit(newAddress(), token);
    };
    await erase({ visitor: { session_id: session }, partner_id: key.partner_id });
    onCall = () => undefined;
    expect(begun).not.toBe('begins');
    expect((await get(`/v1/sessions/${begun}`)).statusCode).toBe(200);
    expect(await code(`/v1/sessions/${session}`)).toBe('session_expired');
  });

  it('continues the kept session of a tab, and recognizes a repeated visit of it', async () => {
    const ip = newAddress();
    const token = randomUUID();
    const erased = await visit(newAddress(), token);
    const visit_id = randomUUID();
    await collect(api, tracker, { ip, body: { token, visit_id } });
    const kept = (await feed(api, key)).sessions.at(-1);
    const lastSeen = async () => {
      await api.caughtUp();
      return (await get(`/v1/sessions/${kept?.session_id}`)).json().last_seen_at;
    };
    await erase({ visitor: { session_id: erased }, partner_id: null });
    const count = (await feed(api, key, 'limit=100')).sessions.length;
    clock.advance(1_000);
    await collect(api, tracker, { ip, body: { token, visit_id } });
    expect(await lastSeen()).toBe(kept?.last_seen_at);
    await collect(api, tracker, { ip, body: { token } });
    expect(await lastSeen()).not.toBe(kept?.last_seen_at);
    expect((await feed(api, key, 'limit=100')).sessions).toHaveLength(count);
  });

  it('ends a pending reveal without a unit, and bills one that completes before it is gone', async () => {
    const { units } = await audit();
    const ips = [newAddress(), newAddress()] as const;
    const reveals: string[] = [];
    for (const ip of ips) {
      provider.says(ip, 'hangs');
      const session = await visit(ip, randomUUID());
      reveals.push(String((await post(session)).json().reveal_id));
    }
    const [first, second] = reveals;
    await api.caughtUp();
    await erase({ visitor: { ip: ips[0] }, partner_id: null });
    expect((await audit()).units).toBe(units);
    let isComplete = false;
    onCall = async (call) => {
      if (isComplete || !call.startsWith('expire reveal-')) return;
      isComplete = true;
      const { store } = api.runtime;
      const stream = `reveal-${second}`;
      const [requested] = await Array.fromAsync(store.readStream(stream));
      const done = { completed_at: isoTime(clock.now()), billable: true, result: RESULT };
      const data = { ...requested?.data, ...done };
      const metadata = requested?.metadata ?? { $correlationId: '', $causationId: '', at: '' };
      await store.append(stream, 0, [
        { id: randomUUID(), type: 'reveals.RevealCompleted.v1', data, metadata },
      ]);
    };
    await erase({ visitor: { ip: ips[1] }, partner_id: null });
    onCall = () => undefined;
    expect(await Promise.all([first, second].map((id) => code(`/v1/reveals/${id}`)))).toEqual([
      'reveal_expired',
      'reveal_expired',
    ]);
    const report = await audit();
    expect(report.differences).toEqual([]);
    expect(report.units).toBe(units + 1);
  });

  it('limits itself to one partner, and then leaves what partners share', async () => {
    const ip = newAddress();
    await api.post(key, ip);
    await api.settled(key, ip);
    const mine = await visit(ip, randomUUID());
    const stranger = await api.key();
    await erase({ visitor: { ip }, partner_id: stranger.partner_id });
    expect((await get(`/v1/sessions/${mine}`)).statusCode).toBe(200);
    const theirs = { visitor: { session_id: mine }, partner_id: stranger.partner_id };
    expect(await findVisitor(deps(), theirs)).toMatchObject({ sessions: [], reveals: [], payloads: [] });
    await erase({ visitor: { ip }, partner_id: key.partner_id });
    expect(await code(`/v1/sessions/${mine}`)).toBe('session_expired');
    expect((await api.get(key, ip)).statusCode).toBe(200);
  });

  it('ends work under way and its reservations, and answers from memory no more', async () => {
    const ip = newAddress();
    await api.post(key, ip);
    await api.settled(key, ip);
    expect((await api.get(key, ip)).statusCode).toBe(200);
    await erase({ visitor: { ip }, partner_id: null });
    expect(codeOf(await api.get(key, ip))).toBe('not_requested');
    const failing = newAddress();
    provider.says(failing, 'hangs');
    await api.post(key, failing);
    await erase({ visitor: { ip: failing }, partner_id: null });
    expect(codeOf(await api.get(key, failing))).toBe('not_requested');
    expect((await api.usage(key)).json().enrichment).toMatchObject({ pending: 0 });
  });
});
