/** A partner's intake of work: its daily allowance and its pending limit. */
import { Map as PersistentMap, Set as PersistentSet } from 'immutable';
import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isAhead, isoTime, utcDay } from '../kernel/time.ts';
import {
  INTAKE_PREFIX,
  type IntakeEvent,
  type IntakeSnapshot,
  openInSnapshot,
  type WorkKind,
} from './events.ts';

/** Retention of a partner's ended reservations (docs/architecture.md, Rules of the streams). */
export const INTAKE_KEPT_DAYS = 90;

export interface OpenReservation {
  readonly reservation_id: string;
  readonly ip: string;
  readonly key_id: string;
  readonly made_at: string;
}

/** Reservations per key of a partner on a UTC day (`YYYY-MM-DD`). */
interface DayUsage {
  readonly day: string;
  readonly used: PersistentMap<string, number>;
}

/** A partner's open reservations, and the usage of its last two days, oldest first. */
export interface Intake {
  readonly usage: readonly DayUsage[];
  readonly open: PersistentMap<string, OpenReservation>;
  readonly openByIp: PersistentMap<string, string>;
  /** Ids of reservations that were erased since the last snapshot. */
  readonly erased: PersistentSet<string>;
}

export type IntakeCommand =
  | {
      readonly type: 'Reserve';
      readonly reservation_id: string;
      readonly partner_id: string;
      readonly key_id: string;
      readonly ip: string;
      readonly kind: WorkKind;
      /** Daily limit of new reservations for this key; null: no limit. */
      readonly dailyAllowance: number | null;
      /** Limit of open reservations that the calling key sets for its partner. */
      readonly pendingLimit: number;
      /** A reservation that the enrichment has settled, even if this stream does not show it yet. */
      readonly finished: string | null;
      readonly at: number;
    }
  | {
      readonly type: 'Settle';
      readonly partner_id: string;
      readonly reservation_ids: readonly string[];
      readonly at: number;
    }
  /** Ends reservations of an erased address, open or not. */
  | {
      readonly type: 'Erase';
      readonly partner_id: string;
      readonly reservation_ids: readonly string[];
      readonly at: number;
    };

export type IntakeRefusal = 'enrichment_limit' | 'pending_limit';

const settledEvent = (partner_id: string, reservation_id: string, at: number): IntakeEvent => ({
  type: 'lookup.ReservationSettled.v1',
  data: { reservation_id, partner_id, settled_at: isoTime(at) },
});

function reserve(command: Extract<IntakeCommand, { type: 'Reserve' }>, state: Intake) {
  const { reservation_id, partner_id, key_id, ip, kind, dailyAllowance, pendingLimit, finished, at } =
    command;
  const existing = state.openByIp.get(ip);
  const settles = existing !== undefined && existing === finished;
  if (existing !== undefined && !settles) return accept<IntakeEvent[]>([]);
  const used = usageAt(state.usage, at).today.used.get(key_id) ?? 0;
  if (dailyAllowance !== null && used >= dailyAllowance) return refuse<IntakeRefusal>('enrichment_limit');
  if (state.open.size - (settles ? 1 : 0) >= pendingLimit) return refuse<IntakeRefusal>('pending_limit');
  const made: IntakeEvent = {
    type: 'lookup.ReservationMade.v1',
    data: { reservation_id, partner_id, key_id, ip, kind, made_at: isoTime(at) },
  };
  return accept<IntakeEvent[]>(settles ? [settledEvent(partner_id, existing, at), made] : [made]);
}

/** Decides a partner's reservations. Persistent maps avoid copying states with very many open ones. */
export const intakeDecider: Decider<Intake, IntakeCommand, IntakeEvent, IntakeRefusal> = {
  initial: { usage: [], open: PersistentMap(), openByIp: PersistentMap(), erased: PersistentSet() },

  decide(command, state) {
    switch (command.type) {
      case 'Reserve':
        return reserve(command, state);
      case 'Settle':
        return accept(
          command.reservation_ids
            .filter((id) => state.open.has(id))
            .map((id) => settledEvent(command.partner_id, id, command.at)),
        );
      case 'Erase': {
        const { partner_id, at } = command;
        const reservation_ids = command.reservation_ids.filter((id) => !state.erased.has(id));
        const data = { partner_id, reservation_ids, erased_at: isoTime(at) };
        const erased: IntakeEvent = { type: 'lookup.ReservationsErased.v1', data };
        return accept(reservation_ids.length === 0 ? [] : [erased]);
      }
      default:
        return unreachable(command);
    }
  },

  evolve(state, { type, data }) {
    switch (type) {
      case 'lookup.ReservationMade.v1': {
        const { reservation_id, ip, key_id, made_at } = data;
        const { earlier, today } = usageAt(state.usage, Date.parse(made_at));
        const used = today.used.update(key_id, 0, (before) => before + 1);
        return {
          ...state,
          usage: [...earlier.slice(-1), { day: today.day, used }],
          open: state.open.set(reservation_id, { reservation_id, ip, key_id, made_at }),
          openByIp: state.openByIp.set(ip, reservation_id),
        };
      }
      case 'lookup.ReservationSettled.v1':
        return settled(state, data.reservation_id);
      case 'lookup.ReservationsErased.v1': {
        const { reservation_ids } = data;
        return { ...reservation_ids.reduce(settled, state), erased: state.erased.union(reservation_ids) };
      }
      case 'lookup.IntakeSnapshotted.v1': {
        const reservations = openInSnapshot(data);
        return {
          usage: usageInSnapshot(data),
          open: PersistentMap(reservations.map((one) => [one.reservation_id, one])),
          openByIp: PersistentMap(reservations.map((one) => [one.ip, one.reservation_id])),
          erased: PersistentSet(),
        };
      }
      default:
        return unreachable(type);
    }
  },
};

function settled(state: Intake, reservationId: string): Intake {
  const { open, openByIp } = state;
  const ip = open.get(reservationId)?.ip;
  const isOfIp = ip !== undefined && openByIp.get(ip) === reservationId;
  return {
    ...state,
    open: open.delete(reservationId),
    openByIp: isOfIp ? openByIp.delete(ip) : openByIp,
  };
}

/**
 * Returns the usage of the day that a reservation at `at` counts into, and of earlier days. A late reservation, or one from a
 * slow clock, counts into the latest day. A day that lies ahead is from a fast clock and is dropped.
 */
function usageAt(usage: readonly DayUsage[], at: number) {
  const known = usage.filter(({ day }) => !isAhead(Date.parse(day), at));
  const last = known.at(-1);
  const day = utcDay(at);
  return last !== undefined && last.day >= day
    ? { earlier: known.slice(0, -1), today: last }
    : { earlier: known, today: { day, used: PersistentMap<string, number>() } };
}

/** Returns whether a fast clock has opened a day that lies ahead of `at` (milliseconds). */
export function hasUsageAhead({ usage }: Intake, at: number): boolean {
  const last = usage.at(-1);
  return last !== undefined && isAhead(Date.parse(last.day), at);
}

const usageInSnapshot = ({ day, used_today, earlier }: IntakeSnapshot): DayUsage[] => [
  ...(earlier === undefined ? [] : [{ day: earlier.day, used: PersistentMap(earlier.used) }]),
  ...(day === '' ? [] : [{ day, used: PersistentMap(used_today) }]),
];

/** Makes a snapshot event of the state, behind which the stream can be truncated. */
export function snapshotIntake(state: Intake): IntakeEvent {
  const open = [...state.open.values()];
  const today = state.usage.at(-1);
  const earlier = state.usage.at(-2);
  const keys = [...new Set(open.map((one) => one.key_id))];
  const indexOf = new Map(keys.map((key, index) => [key, index]));
  return {
    type: 'lookup.IntakeSnapshotted.v1',
    data: {
      day: today?.day ?? '',
      used_today: today?.used.toObject() ?? {},
      ...(earlier ? { earlier: { day: earlier.day, used: earlier.used.toObject() } } : {}),
      keys,
      open: open.map(({ reservation_id, ip, key_id, made_at }) => [
        reservation_id,
        ip,
        indexOf.get(key_id) ?? keys.length,
        Date.parse(made_at),
      ]),
    },
  };
}

export const intakeStream = (partnerId: string): string => `${INTAKE_PREFIX}${partnerId}`;
