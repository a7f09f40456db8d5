import pg from 'pg';
import { eventually } from '../../support/eventually.ts';
import { settle } from '../invariants/settle.ts';
import type { Load } from '../load/load.ts';
import type { StormProcess } from '../processes.ts';
import type { Stack } from '../stack.ts';

const CURRENT_MS = 30_000;
const WRITTEN_MS = 60_000;

const LATER = `select count(*)::int as later from eventlog.event where type = 'sessions.SessionVisited.v2'`;
/** Visits in the log, in the new column and in the new projection. */
const VISITS = `
  select (select count(*) from eventlog.event where type ~ '^sessions.Session(Created|Visited).v')::int as events,
    (${LATER}),
    (select sum(visits) from read.session)::int as in_column,
    (select sum(visits) from read.session_visit)::int as in_projection`;

/** Waits, under load, for an event of the version that the last release writes. */
export const laterVersionWritten = async ({ postgres }: Stack): Promise<void> => {
  const db = new pg.Client({ connectionString: postgres.directUrl });
  await db.connect();
  await eventually(
    'a visit is written in the later version',
    () => db.query(LATER).then(({ rows }) => rows[0].later),
    (later) => later > 0,
    WRITTEN_MS,
  ).finally(() => db.end());
};

/** The made-up release's read models hold every event once, whichever release led them. */
export const checkReadModels = async ({ postgres, api }: Stack, { violations }: Load): Promise<number> => {
  const [one] = api;
  // The column has its default in rows that this release wrote.
  const { code, stderr } = (await one?.cli('projection', 'rebuild', 'sessions')) ?? {};
  if (code !== 0) violations.add('a read model is rebuilt for its new column', `${code}: ${stderr}`);
  const db = new pg.Client({ connectionString: postgres.directUrl });
  await db.connect();
  let later = 0;
  const different = await settle(async () => {
    const { rows } = await db.query(VISITS);
    const { events, in_column, in_projection } = rows[0];
    later = rows[0].later;
    const isWhole = in_projection > 0 && in_column === in_projection;
    // The log of an EventStoreDB cannot be counted here.
    return isWhole && (events === 0 || events === in_projection) ? [] : [JSON.stringify(rows[0])];
  }, CURRENT_MS);
  await db.end();
  for (const detail of different) violations.add('new read models hold every event once', detail);
  return later;
};

/** No part of the service met an event that it could not apply. */
export const checkLogs = (processes: readonly StormProcess[], { violations }: Load): void => {
  for (const one of processes) {
    const stopped = one
      .log()
      .split('\n')
      .find((line) => line.includes('stopped by an event'));
    if (stopped !== undefined) violations.add('no event stops a release', `${one.name}: ${stopped}`);
  }
};
