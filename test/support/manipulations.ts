/**
 * Manipulations of a partner's ledger with write access to every table: each keeps everything else as consistent as
 * it can without the receipt of an invented reveal. For a database of the embedded event store where nothing else
 * runs.
 */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type BillingEvent, billingStream } from '../../domain/billing/events.ts';
import { digestOf, ledgerDecider } from '../../domain/billing/ledger.ts';
import { revealStream } from './reveals.ts';

type Entry = BillingEvent['data'];
export type Manipulation = (client: pg.ClientBase, partnerId: string) => Promise<void>;

const entriesOf = async (client: pg.ClientBase, partnerId: string): Promise<Entry[]> => {
  const { rows } = await client.query<{ data: Entry }>(
    'select data from eventlog.event where stream = $1 order by revision',
    [billingStream(partnerId)],
  );
  return rows.map(({ data }) => data);
};

/** Rewrites a ledger with every digest correct, and numbers its rows in the read model to match. */
const rewrite = async (
  client: pg.ClientBase,
  partnerId: string,
  entries: readonly Entry[],
): Promise<void> => {
  const stream = billingStream(partnerId);
  let previous = ledgerDecider.initial.digest;
  for (const [number, entry] of entries.entries()) {
    const chained = { ...entry, previous };
    previous = digestOf(number, chained);
    await client.query('update eventlog.event set data = $3 where stream = $1 and revision = $2', [
      stream,
      number,
      { ...chained, digest: previous },
    ]);
    await client.query('update read.reveal_unit set ledger_number = $2, units = $3 where reveal_id = $1', [
      entry.reveal_id,
      number,
      entry.units,
    ]);
  }
  await client.query('delete from eventlog.event where stream = $1 and revision >= $2', [
    stream,
    entries.length,
  ]);
  await client.query('update eventlog.stream set revision = $2 where name = $1', [
    stream,
    entries.length - 1,
  ]);
};

/** Removes the entries of these numbers, with their rows of the read model. */
const removeEntries = async (client: pg.ClientBase, partnerId: string, numbers: readonly number[]) => {
  const entries = await entriesOf(client, partnerId);
  const removed = entries.filter((_, number) => numbers.includes(number));
  await rewrite(
    client,
    partnerId,
    entries.filter((_, number) => !numbers.includes(number)),
  );
  for (const { reveal_id } of removed) {
    await client.query('delete from read.reveal_unit where reveal_id = $1', [reveal_id]);
  }
  return removed;
};

const removeReceipt = async (client: pg.ClientBase, revealId: string): Promise<void> => {
  await client.query('delete from eventlog.event where stream = $1', [revealStream(revealId)]);
  await client.query('delete from eventlog.stream where name = $1', [revealStream(revealId)]);
};

/** An entry at the ledger's end, correctly chained, for an invented reveal. */
const inventEntry: Manipulation = async (client, partnerId) => {
  const entries = await entriesOf(client, partnerId);
  const last = entries.at(-1) as Entry;
  const { rows } = await client.query<{ position: string }>(
    'select max(position) as position from eventlog.event',
  );
  const entry: Entry = {
    ...last,
    reveal_id: randomUUID(),
    completed_at: new Date(Date.parse(last.completed_at) + 1_000).toISOString(),
    units: 1,
    position: rows[0]?.position ?? '',
    previous: last.digest,
  };
  const data = { ...entry, digest: digestOf(entries.length, entry) };
  await client.query(
    `insert into eventlog.event (stream, revision, id, type, data, metadata)
     select stream, revision + 1, gen_random_uuid(), type, $2, metadata
     from eventlog.event where stream = $1 and revision = $3`,
    [billingStream(partnerId), data, entries.length - 1],
  );
  await client.query('update eventlog.stream set revision = $2 where name = $1', [
    billingStream(partnerId),
    entries.length,
  ]);
};

/** The request is still there. */
const removeCompletion: Manipulation = async (client, partnerId) => {
  for (const { reveal_id } of await removeEntries(client, partnerId, [3])) {
    await client.query('delete from eventlog.event where stream = $1 and revision = 1', [
      revealStream(reveal_id),
    ]);
    await client.query('update eventlog.stream set revision = 0 where name = $1', [revealStream(reveal_id)]);
  }
};

const changeUnits: Manipulation = async (client, partnerId) => {
  const entries = await entriesOf(client, partnerId);
  const last = entries.findLastIndex(({ units }) => units === 0);
  const changed = entries.map((entry, number) => (number === last ? { ...entry, units: 1 as const } : entry));
  await rewrite(client, partnerId, changed);
};

/** Removes the last two entries with every trace of their reveals: only an anchor can show it. */
const cutTheEnd: Manipulation = async (client, partnerId) => {
  const { length } = await entriesOf(client, partnerId);
  for (const { reveal_id } of await removeEntries(client, partnerId, [length - 2, length - 1])) {
    await removeReceipt(client, reveal_id);
    await client.query('delete from read.reveal where reveal_id = $1', [reveal_id]);
  }
};

/** A ledger needs five entries for them, of which one has no unit. */
export const manipulations = {
  inventEntry,
  removeCompletion,
  changeUnits,
  cutTheEnd,
} as const;
