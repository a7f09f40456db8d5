import { type DueAttempts, isClaimed } from '../claims.ts';

const IS_CLAIMED = isClaimed('w.ip', 'w.round', 'w.attempts + 1');

const unclaimedWork = (due: string): string => `
  select w.ip as item, w.round as cycle, w.attempts + 1 as attempt from read.enrichment_work w
  where ${due} and not ${IS_CLAIMED}`;

const nextAsker = (after = ''): string => {
  const nextIn = (table: string) =>
    `(select o.asked_by from ${table} o ${after} order by o.asked_by limit 1)`;
  return `least(${nextIn('read.enrichment_work')}, ${nextIn('read.enrichment_asker')})`;
};

/**
 * The earliest due work of an asker, by the rows `d`. The CASE makes the planner look up claims row by row; as a join it compares
 * every row with every live claim. The asker stands in the bounds as in `itemsOfTurns`.
 */
const earliestOf = (from: string, d: string): string => `
  (select w.ip, ${d}.next_attempt_at from ${from}
   where ${d}.asked_by = askers.asked_by and (${d}.asked_by, ${d}.next_attempt_at) <= (askers.asked_by, $1::timestamptz)
     and case when ${IS_CLAIMED} then false else true end
   order by ${d}.next_attempt_at limit $2)`;

/** `offset 0` keeps the planner from a join that reads all rows of an asker. */
const FURTHER = `read.enrichment_asker a, lateral (
  select * from read.enrichment_work w where w.ip = a.ip offset 0) w`;

/**
 * Round robin over partners, with turns of their own for their reveals: the earliest of each, then the second. Work for which
 * several wait has a turn of each. Within a turn the order is random, because by time a limit of one would always pick the
 * partner with the longest backlog.
 */
const ROUND_ROBIN = `
  select own.ip from (
    with recursive askers as (
      select ${nextAsker()} as asked_by
      union all
      select ${nextAsker('where o.asked_by > a.asked_by')} from askers a where a.asked_by is not null)
    table askers) askers, lateral (
    select ip, row_number() over (order by next_attempt_at) as turn from (
      ${earliestOf('read.enrichment_work w', 'w')}
      union all
      ${earliestOf(FURTHER, 'a')}) due
    order by next_attempt_at limit $2) own
  group by own.ip order by min(own.turn), random() limit $2`;

/** The enrichment attempts that are due, in the turns of the partners that wait for them. */
export const DUE_ENRICHMENTS: DueAttempts = {
  name: 'claim_due_enrichments',
  select: `${unclaimedWork(`w.ip = any (array(${ROUND_ROBIN}))`)} for update of w skip locked`,
  selectAhead: `${unclaimedWork('coalesce(w.last_attempt_at, w.requested_at) > $5')}
                limit $2 for update of w skip locked`,
  mark: 'enrichment',
  // Further askers need no look ahead: one that is due before the work itself was notified when it joined.
  next: 'select min(next_attempt_at) from read.enrichment_work',
};
