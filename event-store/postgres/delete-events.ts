import { pause } from '../../platform/pause.ts';
import { WrongExpectedRevision } from '../port.ts';
import type { Query } from './pages.ts';

const DELETE_ROWS = 2_000;

/** Deletes a stream whose last revision is `last`, as `EventStore.expire`. `at`: the time of the deletion. */
export const expireStream = async (query: Query, stream: string, last: number, at: Date): Promise<void> => {
  const rows = await query(
    'expire',
    // The writers' lock is needed because a concurrent append would not see that the stream expires.
    `with head as (select name, revision from eventlog.stream
                   where name = $1 and (select eventlog.lock_writer()) for update),
          done as (update eventlog.stream s set expired = true, expired_at = coalesce(s.expired_at, $3) from head
                   where s.name = head.name and head.revision <= $2)
     select revision from head`,
    [stream, last, at],
  );
  const revision: number | undefined = rows[0]?.revision;
  if (revision === undefined) return;
  if (revision > last) throw new WrongExpectedRevision(stream, revision);
  await deleteBefore(query, stream, revision + 1);
};

/** Deletes the events of a stream before a revision: of those that are there, and not of those that are appended meanwhile. */
export const truncateStream = async (query: Query, stream: string, revision: number): Promise<void> => {
  const [row] = await query(
    'truncate',
    `update eventlog.stream
     set truncated_before = greatest(truncated_before, least($2, revision + 1))
     where name = $1 returning truncated_before`,
    [stream, revision],
  );
  if (row) await deleteBefore(query, stream, row.truncated_before);
};

/**
 * Deletes the events of a stream before a revision; each statement begins after what the one before has deleted, and after as long a
 * pause: appends wait for the same disk, and a stream may have millions.
 */
export const deleteBefore = async (query: Query, stream: string, revision: number): Promise<void> => {
  for (let after = -1; ; ) {
    const begun = performance.now();
    const rows = await query(
      'delete_before',
      `with deleted as (
         delete from eventlog.event where position = any (array(
           select position from eventlog.event where stream = $1 and revision < $2 and revision > $3
           order by revision limit ${DELETE_ROWS})) returning revision)
       select count(*)::int as deleted, max(revision) as last from deleted`,
      [stream, revision, after],
    );
    const { deleted, last } = rows[0] as { deleted: number; last: number };
    if (deleted < DELETE_ROWS) return;
    after = last;
    await pause(performance.now() - begun);
  }
};
