/** Uses every feature of this release and writes its database and its answers to a file (README.md beside it). */
import { writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { manualClock, startApi } from '../support/api.ts';
import { answersOf, settled, startSurroundings, useEverything } from '../support/everything.ts';
import { feed } from '../support/tracking.ts';
import { continueLater, expire, liveEarlier } from './earlier.ts';
import { passNights } from './nights.ts';
import { dumpDatabase, RECORDED_AT, type Recorded, withoutPorts } from './recorded.ts';

it('records the release', { timeout: 120_000 }, async () => {
  const file = process.env.RECORD_TO;
  if (file === undefined) throw new Error('RECORD_TO names no file');
  const clock = manualClock(RECORDED_AT);
  const around = await startSurroundings();
  const api = await startApi({ clock, providers: [around.provider], env: around.env });
  clock.set(RECORDED_AT - 40 * DAY);
  const key = await api.key();
  const past = await liveEarlier(api, key, around);
  clock.set(RECORDED_AT);
  await expire(api);
  await passNights(api, key.partner_id);
  await continueLater(api, key, around, past);
  const used = await useEverything(api, around, key);
  const { next_cursor } = await feed(api, used.key, 'limit=2');
  await settled(api);
  const all = { ...used, urls: [...used.urls, ...past.urls] };
  const database = await dumpDatabase(api.runtime.databaseUrl);
  // After the dump: some of these requests are counted.
  const answers = await answersOf(api, all);
  expect(answers.told.map(({ statusCode }) => statusCode)).not.toContain(500);
  const recorded: Recorded = { used: all, cursor: next_cursor, database, answers };
  writeFileSync(file, gzipSync(withoutPorts(JSON.stringify(recorded), around), { level: 9 }));
  await api.close();
  await around.close();
});
