import type pg from 'pg';
import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import { createNamesBatcher, type NamesBatcher } from '../../commands/domains/aggregates.ts';
import { recordCheck } from '../../commands/domains/record-check.ts';
import { domainStream, needsProof } from '../../domain/domains/domain.ts';
import { aheadAfter } from '../../domain/kernel/ahead.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import { createWakeup } from '../../platform/wakeup.ts';
import { claimDue, type DueAttempts, isClaimed } from '../claims.ts';
import { type CnameResolver, type LookError, lookWhere } from './cname.ts';
import { hasToken, type TxtResolver } from './proof.ts';

export interface LookOptions {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
  /** The service's own name, in lower case: where domains must point. */
  readonly serviceHost: string;
  /** One for each look: ending a look ends all that its resolver was asked. */
  readonly newResolver: () => CnameResolver & TxtResolver;
  /** The token of a partner for a name. */
  readonly tokenOf: (hostname: string, partnerId: string) => string;
  readonly onLook: (outcome: LookError | 'points_here') => void;
}

interface DueLook {
  readonly domain_id: string;
  /** The looks that ended before it. */
  readonly looks: number;
}

/** While PostgreSQL does not answer, or there is no room for more. */
const AGAIN_MS = 500;
const MAX_CONCURRENT_CHECKS = 8;
/** Of one partner, over all workers: names whose DNS servers are silent take the longest. */
const AT_ONCE_OF_PARTNER = 2;
/** For a whole chain of CNAMEs. */
const LOOK_MS = 8_000;
/** Between a look's end and its event, and for clocks that differ. */
const LEASE_MS = LOOK_MS + 15_000;

/** Looks where custom domains point whenever it is time to. Any number of workers add up. */
export const startDomainChecks = (options: LookOptions): { nudge(): void; stop(): Promise<void> } => {
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  const wakeup = createWakeup();
  const names = createNamesBatcher(options.store);

  const start = (due: DueLook): void => {
    const check = makeCheck({ ...options, names }, due, stopping.signal)
      .catch((error: unknown) => {
        options.log.warn({ error: String(error), domain: due.domain_id }, 'a look was not recorded');
      })
      .finally(() => {
        running.delete(check);
        wakeup.wake();
      });
    running.add(check);
  };

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const room = MAX_CONCURRENT_CHECKS - running.size;
      const none = { looks: [], waitMs: AGAIN_MS };
      const due = room > 0 ? await takeDue(options, room).catch(() => none) : none;
      for (const one of due.looks) start(one);
      if (due.looks.length === 0 || due.looks.length < room) await wakeup.wait(due.waitMs, stopping.signal);
    }
  })();

  return {
    /** Something may be due: look at once. */
    nudge: wakeup.wake,
    stop: async (): Promise<void> => {
      stopping.abort();
      await loop;
      await Promise.all(running);
    },
  };
};

const IS_CLAIMED = isClaimed('l.domain_id::text', '0', 'l.looks + 1');

const dueLook = (due: string): string => `
  select l.domain_id::text as item, 0 as cycle, l.looks + 1 as attempt from work.domain_look l where ${due}`;

/** The first of each partner, then the second of each. What is under way has its turn, and is not taken again. */
const IN_TURN = `
  select domain_id from (
    select domain_id, due_at, is_claimed,
           row_number() over (partition by owner order by is_claimed desc, due_at) as turn
    from (select l.domain_id, l.due_at, coalesce(l.partner_id, l.domain_id) as owner, ${IS_CLAIMED} as is_claimed
          from work.domain_look l where l.due_at <= $1) due) ranked
  where not is_claimed and turn <= ${AT_ONCE_OF_PARTNER} order by turn, due_at limit $2`;

const DUE: DueAttempts = {
  name: 'claim_due_domain_looks',
  select: `${dueLook(`l.domain_id in (${IN_TURN})`)} for update of l skip locked`,
  selectAhead: `${dueLook(`l.due_at is not null and l.recorded_at > $5 and not ${IS_CLAIMED}`)}
                limit $2 for update of l skip locked`,
  mark: 'domain_check',
  next: 'select min(due_at) from work.domain_look',
};

const takeDue = async (
  { pool, clock }: LookOptions,
  limit: number,
): Promise<{ readonly looks: readonly DueLook[]; readonly waitMs: number }> => {
  const { claims, waitMs } = await claimDue(pool, DUE, { now: clock.now(), leaseMs: LEASE_MS, limit });
  return { looks: claims.map(({ item, attempt }) => ({ domain_id: item, looks: attempt - 1 })), waitMs };
};

const makeCheck = async (
  options: LookOptions & { readonly names: NamesBatcher },
  due: DueLook,
  stopping: AbortSignal,
): Promise<void> => {
  const { names, pool, clock, serviceHost, newResolver, tokenOf, onLook } = options;
  const { domain_id, looks } = due;
  const hostname = await hostnameOf(pool, domain_id);
  if (hostname === null) return;
  const at = clock.now();
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(LOOK_MS)]);
  const resolver = newResolver();
  const error = await lookWhere(resolver, hostname, serviceHost, signal);
  const partner = error === null ? await partnerToProve(names, hostname, domain_id) : null;
  const proven = partner !== null && (await hasToken(resolver, hostname, tokenOf(hostname, partner), signal));
  // A look cut short by this process's end is none: it is due again after its lease.
  if (stopping.aborted && error !== null) return;
  const id = uuid();
  const context = { correlationId: id, causationId: id, at: clock.now() };
  const next = await recordCheck(names, { domain_id, hostname, at, error, proven }, context);
  await pool.query(
    // The first to end it counts. One that was claimed again meanwhile is looked at again.
    `update work.domain_look set looks = looks + 1, looked_at = $3,
            (due_at, recorded_at) = row (case when due_at > $3 and recorded_at <= $5 then due_at else $4 end, $3)
     where domain_id = $1 and looks = $2`,
    [domain_id, looks, new Date(at), next === null ? null : new Date(next), new Date(aheadAfter(at))],
  );
  onLook(error ?? 'points_here');
};

/** The partner that has to show that the name is its own; null: the CNAME is enough. */
const partnerToProve = (names: NamesBatcher, hostname: string, domainId: string): Promise<string | null> =>
  names.readState(domainStream(hostname), (name) => {
    const claim = name.claims.get(domainId);
    return claim?.status === 'pending' && needsProof(name, claim.partner_id) ? claim.partner_id : null;
  });

const hostnameOf = async (pool: pg.Pool, domainId: string): Promise<string | null> => {
  const { rows } = await pool.query<{ hostname: string }>(
    'select hostname from work.domain_look where domain_id = $1',
    [domainId],
  );
  return rows[0]?.hostname ?? null;
};
