import type pg from 'pg';
import { endsWithin } from './pause.ts';

/** A server that hangs never answers a goodbye. */
const END_MS = 1_000;

/** Ends a connection, and cuts it where the server does not answer in time. Never rejects. */
export const endClient = async (client: pg.Client): Promise<void> => {
  const ended = await endsWithin(client.end(), END_MS).catch(() => true);
  // Typed by neither package: the connection's socket.
  if (!ended)
    (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
};

/** Ends a pool. What its connections still do after the limit ends with the process. Never rejects. */
export const endPool = async (pool: { end(): Promise<unknown> }): Promise<void> => {
  await endsWithin(pool.end(), END_MS).catch(() => undefined);
};
