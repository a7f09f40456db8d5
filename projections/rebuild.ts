import pg from 'pg';
import type { EventStore, Position } from '../event-store/port.ts';
import { OWN_SETTINGS, withSettings } from '../platform/postgres/pool.ts';
import { exclusiveJob } from '../platform/postgres/transactions.ts';
import type { Projection } from './projection.ts';
import { storableEvents } from './storable.ts';
import { NEXT, switchOver, tablesOf } from './switch-over.ts';

export interface RebuildOptions {
  readonly store: EventStore;
  readonly url: string;
  readonly projections: readonly Projection[];
  /** Called each time that long readers of the tables delay the switch. */
  readonly onWaiting?: () => void;
}

export interface Rebuilt {
  readonly events: number;
  readonly position: Position | null;
}

const BATCH = 2_000;

/** Rebuilds projections beside the live tables in one pass over the log, then switches the tables in one transaction. */
export const rebuild = (options: RebuildOptions): Promise<Rebuilt> =>
  exclusiveJob(options.url, 'rebuild', () => rebuildAlone(options));

const rebuildAlone = async (options: RebuildOptions): Promise<Rebuilt> => {
  const { store, url, projections, onWaiting } = options;
  const db = new pg.Client({
    connectionString: withSettings(url, OWN_SETTINGS),
    application_name: 'doorplate rebuild',
  });
  db.on('error', () => undefined);
  await db.connect();
  const done = new AbortController();
  try {
    await createTables(db, projections);
    // As in the live projections: a server crash loses only rows that no reader has seen.
    await db.query(
      `set search_path to ${NEXT}; set synchronous_commit to off; set enable_seqscan to off; set jit to off`,
    );
    let events = 0;
    let position: Position | null = null;
    const head = await store.head();
    const switching = { db, store, projections, onWaiting };
    if (head === null) await switchOver(switching, null);
    else {
      // Expired events too, because the live tables have seen them (docs/adr/0008).
      const following = { after: null, batchSize: BATCH, includeExpired: true, signal: done.signal };
      for await (const batch of oneAhead(store.follow(following))) {
        const storable = storableEvents(batch.events);
        await db.query('begin');
        for (const projection of projections) await projection.apply(storable, db);
        await db.query('commit');
        events += batch.events.length;
        position = batch.position;
        if (position >= head && (await switchOver(switching, position))) break;
      }
    }
    return { events, position };
  } finally {
    done.abort();
    await db.query(`rollback; drop schema if exists ${NEXT} cascade`).catch(() => undefined);
    await db.end();
  }
};

/** Reads the next batch while the current one is applied. A consumer that stops early must abort the source's signal. */
async function* oneAhead<T>(source: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  let next = iterator.next();
  for (;;) {
    const { done, value } = await next;
    if (done) return;
    next = iterator.next();
    // Prevents an unhandled rejection if the consumer stops early; otherwise the await above throws.
    next.catch(() => undefined);
    yield value;
  }
}

const createTables = async (db: pg.ClientBase, projections: readonly Projection[]): Promise<void> => {
  await db.query(`drop schema if exists ${NEXT} cascade; create schema ${NEXT}`);
  for (const table of tablesOf(projections)) {
    await db.query(`create table ${NEXT}.${table} (like read.${table} including all)`);
    await db
      .query(`select obj_description('read.${table}'::regclass) as text`)
      .then(({ rows }) =>
        db.query(`comment on table ${NEXT}.${table} is ${pg.escapeLiteral(rows[0]?.text ?? '')}`),
      );
  }
};
