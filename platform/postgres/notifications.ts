import type pg from 'pg';
import { connectClient, createClient, endClient } from './pool.ts';

/**
 * Returns SQL that notifies while the server's queue has room. A full queue fails the whole notifying transaction, and any
 * login can fill it by listening in an open transaction. So listeners must poll as well.
 * @param channel and `payload` are SQL expressions
 */
export const notifyIfRoom = (channel: string, payload: string): string =>
  `case when pg_notification_queue_usage() < 0.5 then pg_notify(${channel}, ${payload}) end`;

/** Notifies when the connection's transaction commits, or at once without one. A notification may be lost, so listeners poll as well. */
export async function notify(db: Pick<pg.ClientBase, 'query'>, channel: string, payload = ''): Promise<void> {
  await db.query({ name: 'notify', text: NOTIFY, values: [channel, payload] });
}

const NOTIFY = `select ${notifyIfRoom('$1::text', '$2::text')}`;

/** Notified when an enrichment attempt or a domain check was scheduled. */
export const DUE_CHANNEL = 'doorplate_due';
/** Notified by a process that waits for the saved checkpoints of all consumers. */
export const CHECKPOINTS_CHANNEL = 'doorplate_checkpoints';

/** Notified when what is known of an address was erased. */
export const ERASED_CHANNEL = 'doorplate_erased';

/** Notices of erasures, for answers that a process keeps in memory. */
export interface ErasureNotices {
  /** Whether each notice arrives; otherwise nothing may be answered from memory. */
  isListening(): boolean;
  /** Calls back on each notice, and when earlier ones may have been missed. */
  onErased(callback: () => void): void;
  close(): Promise<void>;
}

/** Begins to listen for erasures. */
export function listenForErasures(url: string): ErasureNotices {
  const callbacks: (() => void)[] = [];
  const onNotice = (): void => {
    for (const callback of callbacks) callback();
  };
  let hasListened = false;
  const listener = new Listener({
    url,
    channels: [ERASED_CHANNEL],
    onNotification: onNotice,
    ready: () => {
      if (hasListened) onNotice();
      hasListened = true;
    },
  });
  listener.ensure();
  return {
    isListening: () => listener.isListening(),
    onErased: (callback) => void callbacks.push(callback),
    close: () => listener.close(),
  };
}

/** Tells all processes of an erasure. It fails where the server's queue is full: then none may be missed. */
export const notifyErased = async (db: Pick<pg.ClientBase, 'query'>): Promise<void> =>
  void (await db.query(`select pg_notify('${ERASED_CHANNEL}', '')`));

export interface ListenerOptions {
  readonly url: string;
  readonly channels: readonly string[];
  readonly onNotification: (channel: string, payload: string) => void;
  /** Called when the connection is lost; earlier notifications may be from a server that has crashed. */
  readonly lost?: () => void;
  /** Called when notifications arrive from now on. */
  readonly ready?: () => void;
}

/** Listens to channels. It misses what is sent while the connection is lost, so callers must poll as well. */
export class Listener {
  readonly #options: ListenerOptions;
  #isListening = false;
  #isClosed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  get channels(): readonly string[] {
    return this.#options.channels;
  }

  /** Connects unless connected. A lost connection is restored after a while, or by the next call. */
  ensure(): void {
    if (this.#isClosed || this.#isListening) return;
    const { url } = this.#options;
    const connection = connections.get(url) ?? new Connection(url);
    connections.set(url, connection);
    connection.add(this);
  }

  isListening(): boolean {
    return this.#isListening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isListening = false;
    await connections.get(this.#options.url)?.remove(this);
  }

  /** For the connection. */
  began(): void {
    if (this.#isClosed) return;
    this.#isListening = true;
    this.#options.ready?.();
  }

  /** For the connection. */
  lost(): void {
    this.#isListening = false;
    this.#options.lost?.();
  }

  /** For the connection. */
  notified(channel: string, payload: string): void {
    if (!this.#isListening || !this.channels.includes(channel)) return;
    try {
      this.#options.onNotification(channel, payload);
    } catch {
      // A notification of another version is ignored; callers poll as well.
    }
  }
}

const SESSION = 'doorplate listen';
const RECONNECT_MS = 1_000;
/** Nothing else is ever sent, so that a connection that was dropped without a word would look quiet. */
const ASK_MS = 5_000;
/** Time limit of connecting and of each statement. */
const ANSWER_MS = 2_000;

/** One connection a process and URL: a notification wakes every session of its database that listens, whatever to. */
const connections = new Map<string, Connection>();

/** The session of all listeners of a database. */
class Connection {
  readonly #url: string;
  readonly #listeners = new Set<Listener>();
  #client: pg.Client | null = null;
  #isConnected = false;
  /** Ends after the statement before it: pg takes one at a time. */
  #statement: Promise<unknown> = Promise.resolve();

  constructor(url: string) {
    this.#url = url;
  }

  add(listener: Listener): void {
    const isNew = !this.#listeners.has(listener);
    this.#listeners.add(listener);
    if (this.#client === null) this.#open();
    else if (isNew && this.#isConnected) void this.#begin(this.#client, [listener]);
  }

  async remove(listener: Listener): Promise<void> {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    connections.delete(this.#url);
    const client = this.#client;
    this.#client = null;
    if (client) await endClient(client);
  }

  #open(): void {
    if (this.#client || this.#listeners.size === 0) return;
    this.#client = createClient(this.#url, SESSION, {
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
    });
    void this.#connect(this.#client);
  }

  async #connect(fresh: pg.Client): Promise<void> {
    fresh.on('error', () => this.#lose(fresh));
    fresh.on('end', () => this.#lose(fresh));
    fresh.on('notification', ({ channel, payload = '' }) => {
      if (this.#client === fresh) for (const listener of this.#listeners) listener.notified(channel, payload);
    });
    try {
      await connectClient(fresh);
    } catch {
      return this.#lose(fresh);
    }
    if (this.#client !== fresh) return;
    this.#isConnected = true;
    await this.#begin(fresh, [...this.#listeners]);
    this.#ask(fresh);
  }

  async #begin(client: pg.Client, listeners: readonly Listener[]): Promise<void> {
    const channels = new Set(listeners.flatMap((listener) => listener.channels));
    try {
      await this.#run(client, [...channels].map((channel) => `listen ${channel}`).join(';'));
    } catch {
      return this.#lose(client);
    }
    if (this.#client === client) for (const listener of listeners) listener.began();
  }

  #ask(client: pg.Client): void {
    const asking = setInterval(() => {
      if (this.#client !== client) clearInterval(asking);
      else this.#run(client, 'select').catch(() => this.#lose(client));
    }, ASK_MS).unref();
  }

  #run(client: pg.Client, text: string): Promise<unknown> {
    const running = this.#statement.then(() => client.query(text));
    this.#statement = running.catch(() => undefined);
    return running;
  }

  #lose(dead: pg.Client): void {
    if (this.#client === dead) {
      this.#client = null;
      this.#isConnected = false;
      for (const listener of this.#listeners) listener.lost();
      setTimeout(() => this.#open(), RECONNECT_MS).unref();
    }
    void dead.end().catch(() => undefined);
  }
}
