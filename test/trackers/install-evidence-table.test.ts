import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { networkOf } from '../../http/server/visitor.ts';
import { createInstallEvidence, forgetInstallEvidence } from '../../processors/sessions/install-evidence.ts';
import { readInstallEvidence } from '../../queries/trackers/install-evidence.ts';
import { type TestDatabase, testDatabase, testPool } from '../support/database.ts';
import { manualClock, NOON } from '../support/manual-clock.ts';

const clock = manualClock();
let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await testDatabase();
  pool = testPool(database);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** A process. */
const start = () => createInstallEvidence({ pool, clock, networkOf });
const read = (tracker: string) => readInstallEvidence(pool, tracker, clock.now());
const rowsOf = async (tracker: string) =>
  (await pool.query('select * from work.install_evidence where tracker_id = $1', [tracker])).rows;
const visitor = (ip: string) => ({ ip, token: randomUUID() });

describe('the evidence of the install check', () => {
  it('of two processes adds up, by the hour', async () => {
    const tracker = randomUUID();
    const [one, other] = [start(), start()];
    for (const process of [one, other]) {
      process.script(tracker);
      process.captured(tracker, 'visit', visitor('8.8.8.8'));
      process.refused(tracker, 'wrong_origin', 'https://a.example');
    }
    await Promise.all([one.flush(), other.flush()]);
    clock.advance(HOUR);
    one.captured(tracker, 'visit', visitor('8.8.8.8'));
    one.captured(tracker, 'crawler', visitor('8.8.4.4'));
    await one.flush();
    const seen = await read(tracker);
    const last_at = new Date(clock.now()).toISOString();
    expect(seen).toMatchObject({
      visits: { count: 3, last_at },
      scripts: { count: 2 },
      crawlers: { count: 1, last_at },
      prefetches: null,
      refusals: [{ reason: 'wrong_origin', count: 2 }],
      origins: [{ name: 'https://a.example' }],
      hosts: [],
      hasEnoughTabs: false,
      hasManyAddresses: false,
      hasPublicAddress: true,
    });
    expect(seen.hours.slice(-3).map(({ visits }) => visits)).toEqual([0, 2, 1]);
    expect(seen.hours).toHaveLength(24);
    await Promise.all([one.close(), other.close()]);
  });

  it('tells one address from many, a private from a public one, and stores none', async () => {
    const tracker = randomUUID();
    const evidence = start();
    for (let tab = 0; tab < 6; tab += 1) evidence.captured(tracker, 'visit', visitor('10.0.0.7'));
    await evidence.flush();
    expect(await read(tracker)).toMatchObject({
      hasEnoughTabs: true,
      hasManyAddresses: false,
      hasPublicAddress: false,
    });
    evidence.captured(tracker, 'visit', visitor('85.214.1.1'));
    await evidence.flush();
    expect(await read(tracker)).toMatchObject({ hasManyAddresses: true, hasPublicAddress: true });
    // An IPv6 /64 is one visitor.
    const other = randomUUID();
    for (const ip of ['2a00:1::1', '2a00:1::2']) evidence.captured(other, 'visit', visitor(ip));
    await evidence.close();
    expect(await read(other)).toMatchObject({ hasManyAddresses: false, hasPublicAddress: true });
    expect(JSON.stringify(await rowsOf(tracker))).not.toMatch(/10\.0\.0\.7|85\.214/);
  });

  it('keeps the newest twenty origins of all processes, cut to 255 characters', async () => {
    const tracker = randomUUID();
    const [one, other] = [start(), start()];
    const name = (n: number) => `https://${n}.example`;
    for (let n = 0; n < 30; n += 1) {
      clock.advance(1);
      one.refused(tracker, 'wrong_origin', name(n));
    }
    await one.flush();
    clock.advance(1);
    other.refused(tracker, 'wrong_origin', `https://${'x'.repeat(300)}.example`);
    other.refused(tracker, 'wrong_origin', name(29));
    other.refused(tracker, 'untrusted_host', 'other.example');
    await other.flush();
    const { origins, hosts, refusals } = await read(tracker);
    expect(hosts.map((host) => host.name)).toEqual(['other.example']);
    expect(origins).toHaveLength(20);
    expect(origins.map((origin) => origin.name)).toEqual(
      expect.arrayContaining([name(29), name(11), `https://${'x'.repeat(247)}`]),
    );
    expect(origins.map((origin) => origin.name)).not.toContain(name(10));
    expect(refusals).toMatchObject([
      { reason: 'wrong_origin', count: 32 },
      { reason: 'untrusted_host', count: 1 },
    ]);
    // A count of each kind, 20 origins and a host.
    expect(await rowsOf(tracker)).toHaveLength(23);
    await Promise.all([one.close(), other.close()]);
  });

  it('is forgotten after 7 days, and by the clock of a process that was fast', async () => {
    const tracker = randomUUID();
    const evidence = start();
    evidence.refused(tracker, 'wrong_origin', 'https://old.example');
    await evidence.flush();
    clock.advance(6 * DAY);
    evidence.captured(tracker, 'visit', visitor('8.8.8.8'));
    await evidence.flush();
    clock.advance(DAY + MINUTE);
    expect((await read(tracker)).refusals).toEqual([]);
    await forgetInstallEvidence(pool, clock.now());
    expect((await rowsOf(tracker)).map(({ kind }) => kind)).toEqual(['visit']);
    clock.advance(400 * DAY);
    evidence.script(tracker);
    await evidence.close();
    clock.set(NOON + 8 * DAY);
    await forgetInstallEvidence(pool, clock.now());
    expect((await rowsOf(tracker)).map(({ kind }) => kind)).toEqual(['visit']);
  });
});
