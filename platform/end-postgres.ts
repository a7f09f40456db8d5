import type pg from 'pg';
import { endsWithin } from './pause.ts';

/** A hanging server never answers the end of a connection. */
const END_MS = 1_000;

/** Ends a connection, and destroys its socket if the server does not answer in time. Never rejects. */
export const endClient = async (client: pg.Client): Promise<void> => {
  const ended = await endsWithin(client.end(), END_MS).catch(() => true);
  if (!ended) cutClient(client);
};

/** Destroys the socket of a connection. */
export const cutClient = (client: pg.Client): void =>
  // Private in both packages' types.
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();

/** Ends a pool, waiting a limited time. Never rejects. */
export const endPool = async (pool: { end(): Promise<unknown> }): Promise<void> => {
  await endsWithin(pool.end(), END_MS).catch(() => undefined);
};
