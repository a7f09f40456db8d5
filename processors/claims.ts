/**
 * Attempts that are due by a time in a read model: enrichments and checks of custom domains. Processes share them through
 * `work.claim`: the earliest due first, at most so many at a time in a process, and of one partner.
 */
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { aheadAfter, DAY } from '../domain/kernel/time.ts';
import { type Clock, type FutureTimeMark, reportFutureTime } from '../platform/clock/clock.ts';
import { createWakeup } from '../platform/clock/waiting.ts';
import { forgetInBatches } from '../platform/postgres/transactions.ts';

export interface Claim {
  readonly item: string;
  readonly cycle: number;
  readonly attempt: number;
  /** The partner that it counts for; null: not known. */
  readonly partner: string | null;
  /** Whether it was held back, and is made now to see whether what held it back can be used again. */
  readonly probe: boolean;
  /** When it was due, ISO 8601. */
  readonly due: string;
}

/** A table with a row for each attempt that is due at a time. All but the names are SQL expressions over a row `w`. */
export interface DueAttempts {
  /** Name of the prepared statement. */
  readonly name: string;
  readonly table: string;
  /** The primary key; as text, the item. */
  readonly key: string;
  readonly cycle: string;
  readonly attempt: string;
  /** null: never. */
  readonly dueAt: string;
  /** When that time was recorded. */
  readonly recordedAt: string;
  /** The partner that it counts for. */
  readonly partner: string;
  readonly mark: FutureTimeMark;
}

/**
 * Returns SQL that is false while a live claim holds the attempt of a row, or while it is held back by one of `$6`. A lease that
 * ends after `$4` is longer than any lease can be, so a fast clock took it and it does not count. The CASE makes the planner look
 * up claims row by row; as a join it reads every claim.
 */
const isFree = ({ key, cycle, attempt }: DueAttempts): string => `(case when exists (
  select from work.claim c where c.item = w.${key}::text and c.cycle = ${cycle} and c.attempt = ${attempt}
    and (c.lease_until > $1 and c.lease_until <= $4 or c.held_by = any ($6))) then false else true end)`;

/**
 * Returns SQL that selects an attempt that `$10` held back, as a probe: of the items that failed least the one that was due last.
 * A new item among any number that always fail is then the next.
 */
const probeText = ({ table, key, cycle, attempt, partner, dueAt }: DueAttempts): string => `
  select w.${key}::text as item, ${cycle} as cycle, ${attempt} as attempt, ${partner} as partner, ${dueAt} as due, true as probe
  from work.claim c join ${table} w on w.${key}::text = c.item and c.cycle = ${cycle} and c.attempt = ${attempt}
  where c.held_by = $10 and (c.lease_until <= $1 or c.lease_until > $4)
  order by c.attempt, c.lease_until desc limit 1 for update of w skip locked`;

/**
 * Returns SQL that claims at most `$2` attempts: the earliest that are due at `$1`, of each partner so many that it has at most `$9`
 * with the `$8` that run in this process; and those that a fast clock recorded after `$5` and so scheduled too late.
 * `withProbes`: one more that `$10` held back.
 */
function claimText(due: DueAttempts, withProbes: boolean): string {
  const { table, key, cycle, attempt, dueAt, recordedAt, partner } = due;
  const select = `
    select w.${key}::text as item, ${cycle} as cycle, ${attempt} as attempt, ${partner} as partner, ${dueAt} as due, false as probe
    from ${table} w
    where ${isFree(due)}`;
  return `
    with earliest as (
      select id, row_number() over (partition by partner order by due_at) + running as nth from (
        select w.${key} as id, ${partner} as partner, ${dueAt} as due_at, coalesce(p.running, 0) as running
        from ${table} w left join unnest($7::uuid[], $8::integer[]) p (id, running) on p.id = ${partner}
        where ${dueAt} <= $1 and coalesce(p.running, 0) < $9 and ${isFree(due)}
        order by ${dueAt} limit $2) of_all),
    due as materialized (
      ${select} and w.${key} = any (array(select id from earliest where nth <= $9)) for update of w skip locked),
    ahead as materialized (
      ${select} and ${dueAt} is not null and ${recordedAt} > $5 limit $2 for update of w skip locked),
    ${withProbes ? `probe as materialized (${probeText(due)}),` : ''}
    claimed as materialized (${withProbes ? 'table probe union all' : ''} (table due union table ahead) limit $2),
    held as (
      insert into work.claim as held (item, cycle, attempt, lease_until)
      select item, cycle, attempt, $3 from claimed
      on conflict (item, cycle, attempt) do update set lease_until = excluded.lease_until, held_by = null
        where held.lease_until <= $1 or held.lease_until > $4
      returning item, cycle, attempt)
    select (select coalesce(json_agg(claimed), '[]') from claimed join held using (item, cycle, attempt)) as claims,
           (select count(*)::int from ahead) as ahead, (select min(${dueAt}) from ${table} w) as next`;
}

/**
 * Ends a claim whose attempt was not made: it is due again as soon as `heldBy` can be used. Its lease ends when the attempt was due,
 * by which probes are chosen.
 */
async function holdBack(pool: pg.Pool, { item, cycle, attempt, due }: Claim, heldBy: string, now: number) {
  await pool.query({
    name: 'hold_back',
    text: 'update work.claim set lease_until = $4, held_by = $5 where item = $1 and cycle = $2 and attempt = $3',
    values: [item, cycle, attempt, at(Math.min(now, Date.parse(due))), heldBy],
  });
}

const at = (ms: number): Date => new Date(ms);

/** For when notifications are lost. */
const IDLE_MS = 10_000;
const POLL_MS = 500;
/** Short, because the wall clock may jump. */
const MAX_WAIT_MS = 5_000;

/** A due attempt that was not claimed belongs to another worker, whose lease may end. */
function waitMs(next: Date | null, now: number): number {
  if (next === null) return IDLE_MS;
  const inMs = next.getTime() - now;
  return inMs > 0 ? Math.min(inMs + 1, MAX_WAIT_MS) : POLL_MS;
}

/** The condition stands twice: a claim that is taken again meanwhile stays. */
const sweepOf = (ended: string): string => `
  delete from work.claim where ${ended} and ctid = any (array(
    select ctid from work.claim where ${ended} order by lease_until limit $2))`;

/** Deletes claims whose lease ended a day ago, or ends over a day from now because a fast clock took it. */
export async function sweepClaims(pool: pg.Pool, now: number): Promise<void> {
  await forgetInBatches(pool, sweepOf('lease_until < $1'), new Date(now - DAY));
  await forgetInBatches(pool, sweepOf('lease_until > $1'), new Date(now + DAY));
}

export interface ClaimLoopOptions {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly due: DueAttempts;
  /** Longer than an attempt and the append of its outcome. */
  readonly leaseMs: number;
  /** Number of attempts that this process makes at a time. */
  readonly slots: number;
  /** Number of those that may be of one partner. */
  readonly perPartner: number;
  /** Returns the names of what cannot be used now, such as providers: what one of them held back stays so. Default: none. */
  readonly heldBack?: () => readonly string[];
  /** Returns the name of one of those for which a single attempt may be made now, to see whether it can be used; null: none. */
  readonly probed?: () => string | null;
  /**
   * Makes the attempt and records its outcome. If it fails, the attempt is due again after its lease.
   * @returns the name of what held it back, so that nothing was recorded; otherwise null
   */
  readonly attempt: (claim: Claim, stopping: AbortSignal) => Promise<string | null>;
  readonly onFailed: (error: unknown, claim: Claim) => void;
}

export interface ClaimLoop {
  /** Polls at once. */
  nudge(): void;
  /** Waits for running attempts. Claimed attempts that have not started are due again after their lease. */
  stop(): Promise<void>;
}

/** Wait after a failed query, or while all slots are in use. */
const RETRY_MS = 500;
/** Attempts that become due within this time share the next poll. */
const BATCH_WINDOW_MS = 20;

/**
 * Claims and makes the attempts that are due, until it is stopped. A claim ends with the outcome of its attempt or with its lease,
 * so an expired lease repeats an attempt and never loses one.
 */
export function startClaimLoop(options: ClaimLoopOptions): ClaimLoop {
  const {
    pool,
    clock,
    due,
    leaseMs,
    slots,
    perPartner,
    heldBack = () => [],
    probed,
    attempt,
    onFailed,
  } = options;
  const running = new Map<Promise<void>, Claim>();
  const stopping = new AbortController();
  const wakeup = createWakeup();
  const text = claimText(due, probed !== undefined);

  async function make(claim: Claim): Promise<void> {
    const heldBy = await attempt(claim, stopping.signal);
    if (heldBy !== null) await holdBack(pool, claim, heldBy, clock.now());
  }

  function start(claim: Claim): void {
    const attempting = make(claim)
      .catch((error: unknown) => onFailed(error, claim))
      .finally(() => {
        running.delete(attempting);
        wakeup.wake();
      });
    running.set(attempting, claim);
  }

  function runningOfPartners(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { partner } of running.values()) {
      if (partner !== null) counts.set(partner, (counts.get(partner) ?? 0) + 1);
    }
    return counts;
  }

  /** Whether a partner's ceiling, rather than the number of due attempts, may have ended the last claim. */
  const isAtCeiling = (): boolean => [...runningOfPartners().values()].some((count) => count >= perPartner);

  /** Claims due attempts. `waitMs`: milliseconds until the next poll is useful, unless a notification arrives earlier. */
  async function claim(
    limit: number,
  ): Promise<{ readonly claims: readonly Claim[]; readonly waitMs: number }> {
    const now = clock.now();
    const leaseUntil = now + leaseMs;
    const ofPartners = runningOfPartners();
    const { rows } = await pool.query<{ claims: Claim[]; ahead: number; next: Date | null }>({
      name: due.name,
      text,
      values: [
        ...[at(now), limit, at(leaseUntil), at(aheadAfter(leaseUntil)), at(aheadAfter(now)), heldBack()],
        ...[[...ofPartners.keys()], [...ofPartners.values()], perPartner],
        ...(probed === undefined ? [] : [probed()]),
      ],
    });
    const [row] = rows;
    reportFutureTime(due.mark, row?.ahead ?? 0);
    return { claims: row?.claims ?? [], waitMs: waitMs(row?.next ?? null, now) };
  }

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const free = slots - running.size;
      let waitMs = RETRY_MS;
      if (free > 0) {
        const claimed = await claim(free).catch(() => ({ claims: [], waitMs: RETRY_MS }));
        for (const one of claimed.claims) start(one);
        const count = claimed.claims.length;
        if (count === free || (count > 0 && isAtCeiling())) continue;
        await setTimeout(BATCH_WINDOW_MS);
        ({ waitMs } = claimed);
      }
      await wakeup.wait(waitMs, stopping.signal);
    }
  })();

  return {
    nudge: wakeup.wake,
    stop: async () => {
      stopping.abort();
      await loop;
      await Promise.all(running.keys());
    },
  };
}
