import { Map as PersistentMap } from 'immutable';
import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isoTime, utcDay } from '../kernel/time.ts';
import { INTAKE_PREFIX, type IntakeEvent, openInSnapshot, type WorkKind } from './events.ts';

export interface OpenReservation {
  readonly reservation_id: string;
  readonly ip: string;
  readonly key_id: string;
  readonly made_at: string;
}

/** A partner's unfinished reservations, and what each of its keys reserved on `day` (UTC). */
export interface Intake {
  readonly day: string;
  readonly usedToday: PersistentMap<string, number>;
  readonly open: PersistentMap<string, OpenReservation>;
  readonly openByIp: PersistentMap<string, string>;
}

export type IntakeCommand =
  | {
      readonly type: 'Reserve';
      readonly reservation_id: string;
      readonly partner_id: string;
      readonly key_id: string;
      readonly ip: string;
      readonly kind: WorkKind;
      /** New reservations a day for this key; null: no cap. */
      readonly dailyAllowance: number | null;
      /** Unfinished reservations that the calling key allows its partner. */
      readonly pendingLimit: number;
      /** A reservation that the enrichment is known to have settled, though this stream may not say so yet. */
      readonly finished: string | null;
      readonly at: number;
    }
  | {
      readonly type: 'Settle';
      readonly partner_id: string;
      readonly reservation_ids: readonly string[];
      readonly at: number;
    };

export type IntakeRefusal = 'enrichment_limit' | 'pending_limit';

const settledEvent = (partner_id: string, reservation_id: string, at: number): IntakeEvent => ({
  type: 'lookup.ReservationSettled.v1',
  data: { reservation_id, partner_id, settled_at: isoTime(at) },
});

const reserve = (command: Extract<IntakeCommand, { type: 'Reserve' }>, state: Intake) => {
  const { reservation_id, partner_id, key_id, ip, kind, dailyAllowance, pendingLimit, finished, at } =
    command;
  const existing = state.openByIp.get(ip);
  const settles = existing !== undefined && existing === finished;
  if (existing !== undefined && !settles) return accept<IntakeEvent[]>([]);
  const used = laterDay(state.day, utcDay(at)) === state.day ? (state.usedToday.get(key_id) ?? 0) : 0;
  if (dailyAllowance !== null && used >= dailyAllowance) return refuse<IntakeRefusal>('enrichment_limit');
  if (state.open.size - (settles ? 1 : 0) >= pendingLimit) return refuse<IntakeRefusal>('pending_limit');
  const made: IntakeEvent = {
    type: 'lookup.ReservationMade.v1',
    data: { reservation_id, partner_id, key_id, ip, kind, made_at: isoTime(at) },
  };
  return accept<IntakeEvent[]>(settles ? [settledEvent(partner_id, existing, at), made] : [made]);
};

/** A hot partner has very many open: the maps share what is not changed, so that no fold is ever copied. */
export const intake: Decider<Intake, IntakeCommand, IntakeEvent, IntakeRefusal> = {
  initial: { day: '', usedToday: PersistentMap(), open: PersistentMap(), openByIp: PersistentMap() },

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
      default:
        return unreachable(command);
    }
  },

  evolve(state, { type, data }) {
    switch (type) {
      case 'lookup.ReservationMade.v1': {
        const { reservation_id, ip, key_id, made_at } = data;
        const day = laterDay(state.day, made_at.slice(0, 10));
        const usedToday = day === state.day ? state.usedToday : PersistentMap<string, number>();
        return {
          day,
          usedToday: usedToday.update(key_id, 0, (used) => used + 1),
          open: state.open.set(reservation_id, { reservation_id, ip, key_id, made_at }),
          openByIp: state.openByIp.set(ip, reservation_id),
        };
      }
      case 'lookup.ReservationSettled.v1': {
        const { open, openByIp } = state;
        const ip = open.get(data.reservation_id)?.ip;
        const isOfIp = ip !== undefined && openByIp.get(ip) === data.reservation_id;
        return {
          ...state,
          open: open.delete(data.reservation_id),
          openByIp: isOfIp ? openByIp.delete(ip) : openByIp,
        };
      }
      case 'lookup.IntakeSnapshotted.v1': {
        const fresh = openInSnapshot(data);
        return {
          day: data.day,
          usedToday: PersistentMap(data.used_today),
          open: PersistentMap(fresh.map((one) => [one.reservation_id, one])),
          openByIp: PersistentMap(fresh.map((one) => [one.ip, one.reservation_id])),
        };
      }
      default:
        return unreachable(type);
    }
  },
};

/** A request that comes late, or from a slow clock, counts into the day that has begun: a day is never opened twice. */
const laterDay = (one: string, other: string): string => (one > other ? one : other);

/** The fold as an event, so that the stream can be truncated behind it. */
export const snapshotIntake = (state: Intake): IntakeEvent => {
  const open = [...state.open.values()];
  const keys = [...new Set(open.map((one) => one.key_id))];
  const indexOf = new Map(keys.map((key, index) => [key, index]));
  return {
    type: 'lookup.IntakeSnapshotted.v1',
    data: {
      day: state.day,
      used_today: state.usedToday.toObject(),
      keys,
      open: open.map(({ reservation_id, ip, key_id, made_at }) => [
        reservation_id,
        ip,
        indexOf.get(key_id) ?? 0,
        Date.parse(made_at),
      ]),
    },
  };
};

export const intakeStream = (partnerId: string): string => `${INTAKE_PREFIX}${partnerId}`;
