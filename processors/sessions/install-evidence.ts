import { hash, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { parsePublicAddress } from '../../domain/kernel/address.ts';
import { aheadAfter, DAY, HOUR, utcDay } from '../../domain/kernel/time.ts';
import {
  type CaptureRefusal,
  ENOUGH_TABS,
  EVIDENCE_KEPT_MS,
  EVIDENCE_LATE_MS,
  type EvidenceKind,
  MAX_DETAIL_LENGTH,
  MAX_DETAILS,
} from '../../domain/sessions/install-evidence.ts';
import { runSoon } from '../../platform/clock/waiting.ts';
import { forgetInBatches } from '../../platform/postgres/transactions.ts';
import type { ProcessorDeps } from '../deps.ts';

/** Trackers between two writes, and those whose visitors are compared; more are not noted. */
const MAX_TRACKERS = 1_000;
const MAX_DAYS = 10_000;

interface Entry {
  readonly kind: EvidenceKind;
  readonly detail: string;
  seen: number;
  lastAt: number;
}

/** The visitors of one tracker on one UTC day. */
interface VisitorsOfDay {
  readonly day: string;
  /** The first visitor's network, as a digest that is never stored. */
  readonly firstNetwork: string;
  /** The last visitor's address, as such a digest: where a proxy hides the visitors it is that of all. */
  lastAddress: string;
  isMany: boolean;
  isPublic: boolean;
  /** Tokens of tabs, ENOUGH_TABS at most. */
  readonly tabs: Set<string>;
}

interface Visitor {
  readonly ip: string;
  /** The token of the tab. */
  readonly token: string;
}

interface EvidenceDeps extends Pick<ProcessorDeps, 'pool' | 'clock'> {
  /** Returns the network that counts as one visitor. */
  readonly networkOf: (ip: string) => string;
}

/**
 * Notes what arrives of the trackers' pixels, for the dashboard's install check. To note costs a map's update; a timer writes all of it
 * in one statement. Strangers may send any id: callers note trackers that exist alone, except refusals by the rate of a visitor, which
 * have room of their own and are written of trackers that exist.
 */
export function createInstallEvidence({ pool, clock, networkOf }: EvidenceDeps) {
  const key = randomBytes(32).toString('base64');
  const digestOf = (text: string): string => hash('sha256', `${key} ${text}`);
  let noted = new Map<string, Map<string, Entry>>();
  let refusedVisitors = new LRUCache<string, Entry>({ max: MAX_TRACKERS });
  const days = new LRUCache<string, VisitorsOfDay>({ max: MAX_DAYS });

  const note = (trackerId: string, kind: EvidenceKind, detail = ''): void => {
    flushing.soon();
    let entries = noted.get(trackerId);
    if (entries === undefined) {
      if (noted.size >= MAX_TRACKERS) return;
      entries = new Map();
      noted.set(trackerId, entries);
    }
    const key = detail === '' ? kind : `${kind} ${detail}`;
    const entry = entries.get(key);
    const now = clock.now();
    if (entry === undefined) {
      if (detail !== '') makeRoom(entries, kind);
      entries.set(key, { kind, detail, seen: 1, lastAt: now });
      return;
    }
    entry.seen += 1;
    entry.lastAt = now;
  };

  const noteVisitor = (trackerId: string, { ip, token }: Visitor): void => {
    const day = utcDay(clock.now());
    let visitors = days.get(trackerId);
    if (visitors?.day !== day) {
      visitors = {
        day,
        firstNetwork: digestOf(networkOf(ip)),
        lastAddress: '',
        isMany: false,
        isPublic: false,
        tabs: new Set(),
      };
      days.set(trackerId, visitors);
    }
    if (visitors.tabs.size < ENOUGH_TABS) visitors.tabs.add(token);
    if (visitors.isMany && visitors.isPublic) return;
    const address = digestOf(ip);
    if (address === visitors.lastAddress) return;
    visitors.lastAddress = address;
    visitors.isMany ||= digestOf(networkOf(ip)) !== visitors.firstNetwork;
    visitors.isPublic ||= parsePublicAddress(ip) !== null;
  };

  const flush = async (): Promise<void> => {
    if (noted.size + refusedVisitors.size === 0) return;
    for (const [trackerId, { seen, lastAt }] of refusedVisitors.entries()) {
      const entries = noted.get(trackerId) ?? new Map<string, Entry>();
      const before = entries.get('rate')?.seen ?? 0;
      noted.set(trackerId, entries.set('rate', { kind: 'rate', detail: '', seen: before + seen, lastAt }));
    }
    refusedVisitors = new LRUCache<string, Entry>({ max: MAX_TRACKERS });
    const rows = [...noted].flatMap(([trackerId, entries]) =>
      [...entries.values()].map((entry) => rowOf(trackerId, entry, days.get(trackerId))),
    );
    noted = new Map();
    const now = clock.now();
    await pool
      .query({
        name: 'note_install_evidence',
        text: NOTE,
        values: [JSON.stringify(rows), new Date(aheadAfter(now)), MAX_DETAILS],
      })
      // A diagnosis: what comes next says the same.
      .catch(() => undefined);
  };
  const flushing = runSoon(flush, EVIDENCE_LATE_MS);

  return {
    script: (trackerId: string): void => note(trackerId, 'script'),
    captured: (trackerId: string, kind: 'visit' | 'crawler' | 'prefetch', visitor: Visitor): void => {
      note(trackerId, kind);
      if (kind === 'visit') noteVisitor(trackerId, visitor);
    },
    /** `header`: the Origin or the Host that was refused. */
    refused: (trackerId: string, reason: CaptureRefusal, header = ''): void => {
      note(trackerId, reason);
      if (header !== '') note(trackerId, reason, header.slice(0, MAX_DETAIL_LENGTH));
    },
    refusedVisitor: (trackerId: string): void => {
      flushing.soon();
      const seen = (refusedVisitors.get(trackerId)?.seen ?? 0) + 1;
      refusedVisitors.set(trackerId, { kind: 'rate', detail: '', seen, lastAt: clock.now() });
    },
    flush,
    close: async (): Promise<void> => {
      flushing.cancel();
      await flush();
    },
  };
}
export type InstallEvidence = ReturnType<typeof createInstallEvidence>;

/** Forgets the origin or the host that was seen longest ago, where as many are noted as are kept. */
function makeRoom(entries: Map<string, Entry>, kind: EvidenceKind): void {
  const details = [...entries].filter(([, entry]) => entry.kind === kind && entry.detail !== '');
  if (details.length < MAX_DETAILS) return;
  const [oldest] = details.toSorted(([, one], [, other]) => one.lastAt - other.lastAt);
  if (oldest) entries.delete(oldest[0]);
}

function rowOf(
  trackerId: string,
  { kind, detail, seen, lastAt }: Entry,
  visitors: VisitorsOfDay | undefined,
) {
  const counted = kind === 'visit' ? visitors : undefined;
  return {
    tracker_id: trackerId,
    kind,
    detail,
    hour: detail === '' ? new Date(lastAt - (lastAt % HOUR)).toISOString() : '-infinity',
    seen,
    last_at: new Date(lastAt).toISOString(),
    tabs: counted?.tabs.size ?? 0,
    many_addresses: counted?.isMany ?? false,
    public_address: counted?.isPublic ?? false,
  };
}

/** By name: a later release may have added columns. */
const COLUMNS = 'tracker_id, kind, detail, hour, seen, last_at, tabs, many_addresses, public_address';

/**
 * Adds to what any process has noted, in one order, so that two processes do not deadlock. The deletion sees the rows as they
 * were before: it makes room for those that are noted now.
 */
const NOTE = `
  with noted as materialized (
         select * from json_populate_recordset(null::work.install_evidence, $1) n
         where n.kind <> 'rate' or exists (select from read.tracker t where t.tracker_id = n.tracker_id)),
       added as (
         insert into work.install_evidence as e (${COLUMNS})
         select ${COLUMNS} from noted order by tracker_id, kind, detail, hour
         on conflict (tracker_id, kind, detail, hour) do update
           set seen = least(e.seen::bigint + excluded.seen, 2147483647),
               last_at = case when e.last_at > $2 then excluded.last_at else greatest(e.last_at, excluded.last_at) end,
               tabs = greatest(e.tabs, excluded.tabs),
               many_addresses = e.many_addresses or excluded.many_addresses,
               public_address = e.public_address or excluded.public_address)
  delete from work.install_evidence where ctid = any (array(
    select surplus.ctid
    from (select tracker_id, kind, count(*) as fresh from noted where detail <> '' group by tracker_id, kind) n
    cross join lateral (
      select e.ctid from work.install_evidence e
      where e.tracker_id = n.tracker_id and e.kind = n.kind and e.detail <> ''
        and not exists (select from noted o
                        where o.tracker_id = e.tracker_id and o.kind = e.kind and o.detail = e.detail)
      order by e.last_at desc offset greatest(0, $3::bigint - n.fresh)) surplus))`;

/** Deletes evidence that is older than 7 days, and what a fast clock left in the future. `now` in milliseconds. */
export async function forgetInstallEvidence(pool: ProcessorDeps['pool'], now: number): Promise<void> {
  const old = 'select ctid from work.install_evidence where last_at < $1 order by last_at limit $2';
  await forgetInBatches(
    pool,
    `delete from work.install_evidence where ctid = any (array(${old}))`,
    new Date(now - EVIDENCE_KEPT_MS),
  );
  await pool.query('delete from work.install_evidence where last_at > $1', [new Date(now + DAY)]);
}
