import type pg from 'pg';
import type { Clock } from '../clock/clock.ts';
import { Listener, notifyIfRoom } from '../postgres/notifications.ts';
import { connectClient, createClient, endClient } from '../postgres/pool.ts';
import { RELEASE } from '../postgres/upgrade-path.ts';

export interface ProcessRow {
  readonly process_id: string;
  readonly beats: string;
  readonly connected: boolean;
  readonly role: string;
  /** The providers of company data that it asks; null: unknown. */
  readonly providers: readonly string[] | null;
}

export interface LeaseRow {
  readonly name: string;
  readonly number: string;
  readonly process_id: string | null;
}

/** Result of one heartbeat: the other processes, and all leases. */
export interface Heartbeat {
  readonly processes: readonly ProcessRow[];
  readonly leases: readonly LeaseRow[];
}

export interface LeaseStoreOptions {
  readonly url: string;
  readonly processId: string;
  readonly role: string;
  readonly clock: Clock;
  /** Called when another process released leases, or the session is lost, so that others will soon count this one as gone. */
  readonly onChange: () => void;
}

const CHANNEL = 'doorplate_leases';
const QUERY_MS = 2_000;

/** The SQL side of heartbeats and leases. Its session's name shows other processes that this one is alive. */
export class LeaseStore {
  readonly #options: LeaseStoreOptions;
  readonly #listener: Listener;
  #client: pg.Client | null = null;
  #beats = 0;
  /** Serializes queries, because the session runs one at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: LeaseStoreOptions) {
    this.#options = options;
    const { url, onChange } = options;
    this.#listener = new Listener({ url, channels: [CHANNEL], onNotification: onChange });
  }

  /**
   * Renews this process's row and reads the others. `gone`: ids of rows to delete. `providers`: those that this process
   * asks; null: none, or not known yet.
   */
  async heartbeat(gone: readonly string[], providers: readonly string[] | null): Promise<Heartbeat> {
    const { processId, role, clock } = this.#options;
    this.#beats += 1;
    const values = [processId, role, this.#beats, new Date(clock.now()), gone, RELEASE, providers];
    const [row] = await this.#query('beat', BEAT, values);
    return row as Heartbeat;
  }

  /** Takes a lease if it still matches `row`. @returns its number; null if another process was faster */
  async take(name: string, row: LeaseRow | null): Promise<string | null> {
    const values = [name, this.#options.processId, row?.number ?? null, row?.process_id ?? null];
    const [taken] = await this.#query('take_lease', TAKE, values);
    return taken?.number ?? null;
  }

  async release(name: string): Promise<void> {
    await this.#query('release_lease', GIVE_BACK, [this.#options.processId, name, CHANNEL]);
  }

  /** Gives all leases back and deletes this process's row. */
  async leave(): Promise<void> {
    const { processId } = this.#options;
    try {
      await this.#query('release_leases', GIVE_BACK, [processId, null, CHANNEL]);
      await this.#query('leave', 'delete from work.process where process_id = $1', [processId]);
    } catch {
      // Other processes notice the end of the session.
    }
    const session = this.#client;
    this.#client = null;
    await this.#listener.close();
    if (session) await endClient(session);
  }

  #query(name: string, text: string, values: unknown[]): Promise<pg.QueryResultRow[]> {
    const result = this.#turn.then(() => this.#queryNow(name, text, values));
    this.#turn = result.catch(() => undefined);
    return result;
  }

  async #queryNow(name: string, text: string, values: unknown[]): Promise<pg.QueryResultRow[]> {
    const session = this.#client ?? (await this.#connect());
    try {
      return (await session.query({ name, text, values })).rows;
    } catch (error) {
      // A timed-out query may still occupy the session.
      if (this.#client === session) this.#client = null;
      void session.end().catch(() => undefined);
      throw error;
    }
  }

  async #connect(): Promise<pg.Client> {
    const { url, processId } = this.#options;
    const fresh = createClient(url, `doorplate heartbeat ${processId}`, {
      settings: '-c synchronous_commit=off',
      connectionTimeoutMillis: QUERY_MS,
      query_timeout: QUERY_MS,
    });
    fresh.on('error', () => this.#forget(fresh));
    fresh.on('end', () => this.#forget(fresh));
    this.#listener.ensure();
    try {
      await connectClient(fresh);
    } catch (error) {
      this.#forget(fresh);
      throw error;
    }
    this.#client = fresh;
    return fresh;
  }

  #forget(dead: pg.Client): void {
    const wasLost = this.#client === dead;
    if (wasLost) this.#client = null;
    void dead.end().catch(() => undefined);
    if (wasLost) this.#options.onChange();
  }
}

const BEAT = `
  with me as (
         insert into work.process (process_id, role, beats, seen_at, release, providers)
           values ($1, $2, $3, $4, $6, $7::text[])
         on conflict (process_id) do update
         set beats = excluded.beats, seen_at = excluded.seen_at, providers = excluded.providers),
       gone as (delete from work.process where process_id = any ($5::uuid[]))
  select
    (select coalesce(json_agg(json_build_object(
              'process_id', p.process_id, 'role', p.role, 'beats', p.beats::text, 'providers', p.providers,
              'connected', exists (select from pg_stat_activity a
                                   where a.application_name = 'doorplate heartbeat ' || p.process_id))), '[]')
     from work.process p where p.process_id <> $1 and p.process_id <> all ($5::uuid[])) as processes,
    (select coalesce(json_agg(json_build_object(
              'name', l.name, 'number', l.number::text, 'process_id', l.process_id)), '[]')
     from work.lease l) as leases`;

const TAKE = `
  insert into work.lease as l (name, number, process_id) values ($1, 1, $2)
  on conflict (name) do update set number = l.number + 1, process_id = excluded.process_id
    where l.number = $3::bigint and l.process_id is not distinct from $4::uuid
  returning number::text`;

const GIVE_BACK = `
  with released as (
    update work.lease set process_id = null where process_id = $1 and ($2::text is null or name = $2) returning 1)
  select ${notifyIfRoom('$3', "''")} from released limit 1`;
