/** What an incremental export of each view reads: which rows changed, and at which position of the log. */

/** The source of a view's changes. The position of a row is the greatest that any of its parts gives. */
export interface Changes {
  /** The projections that write the view's tables. A load ends where all of them have passed. */
  readonly projections: readonly string[];
  /** Columns that identify a row. */
  readonly id: readonly string[];
  /** Select these columns and `changed_position` of rows that changed after a position. */
  readonly present: readonly string[];
  /** The same of rows that may have left the view. */
  readonly gone: readonly string[];
  /** Table whose rows of `gone` are deleted after a while. */
  readonly forgets?: 'expired_session' | 'expired_reveal';
}

/** Stands in the SQL for the position after which a load begins. */
export const SINCE = '$since';

/** Selects from one table, by the column that holds the position of a row's last event. */
const changedIn = (id: readonly string[], table: string, column = 'changed_position'): string =>
  `select ${id.join(', ')}, ${column} as changed_position from read.${table} where ${column} > ${SINCE}`;

const rowsOf = (projection: string, id: string, table: string, column?: string): Changes => ({
  projections: [projection],
  id: [id],
  present: [changedIn([id], table, column)],
  gone: [],
});

const USAGE_HOUR = ['hour', 'key_id', 'outcome'];
const TRACKER_HOUR = ['hour', 'tracker_id'];
const ATTEMPT_HOUR = ['hour', 'webhook_id', 'outcome', 'http_status'];

/** By the name of the view. */
export const CHANGES: Readonly<Record<string, Changes>> = {
  api_keys: rowsOf('partners', 'key_id', 'api_key'),
  deliveries: {
    ...rowsOf('deliveries', 'delivery_id', 'webhook_delivery'),
    present: [
      changedIn(['delivery_id'], 'webhook_delivery'),
      // The deletion of an endpoint cancels its pending deliveries and writes none of their rows.
      `select d.delivery_id, h.last_position
       from read.webhook_health h join read.webhook_delivery d on d.webhook_id = h.webhook_id and d.state = 'pending'
       where h.deleted_at is not null and h.last_position > ${SINCE}`,
    ],
  },
  delivery_attempts: {
    projections: ['deliveries'],
    id: ATTEMPT_HOUR,
    present: [
      `select hour, webhook_id, outcome, nullif(http_status, 0), changed_position
       from read.webhook_attempt_hour where changed_position > ${SINCE}`,
    ],
    gone: [],
  },
  domains: {
    ...rowsOf('domains', 'domain_id', 'domain'),
    gone: [changedIn(['domain_id'], 'released_domain')],
  },
  partners: rowsOf('partners', 'partner_id', 'partner'),
  reservations: {
    ...rowsOf('lookups', 'reservation_id', 'reservation'),
    gone: [changedIn(['reservation_id'], 'erased_reservation')],
  },
  reveals: {
    ...rowsOf('reveals', 'reveal_id', 'reveal', 'last_position'),
    gone: [changedIn(['reveal_id'], 'expired_reveal')],
    forgets: 'expired_reveal',
  },
  sessions: {
    ...rowsOf('sessions', 'session_id', 'session', 'last_position'),
    gone: [changedIn(['session_id'], 'expired_session')],
    forgets: 'expired_session',
  },
  tracker_hours: {
    // The view has the tracker's partner from the read model of trackers.
    projections: ['tracker-usage', 'trackers'],
    id: TRACKER_HOUR,
    present: [changedIn(TRACKER_HOUR, 'tracker_calls_hour'), changedIn(TRACKER_HOUR, 'tracker_hour')],
    gone: [changedIn(TRACKER_HOUR, 'corrected_tracker_hour')],
  },
  trackers: rowsOf('trackers', 'tracker_id', 'tracker'),
  units: rowsOf('reveal-units', 'reveal_id', 'reveal_unit'),
  usage_hours: {
    // The view has the key's partner from the read model of partners.
    projections: ['usage', 'partners'],
    id: USAGE_HOUR,
    present: [changedIn(USAGE_HOUR, 'usage_hour')],
    gone: [changedIn(USAGE_HOUR, 'corrected_usage_hour')],
  },
  webhooks: {
    ...rowsOf('webhooks', 'webhook_id', 'webhook_endpoint', 'last_position'),
    projections: ['webhooks', 'deliveries'],
    present: [
      changedIn(['webhook_id'], 'webhook_endpoint', 'last_position'),
      // The health of an endpoint may outlive its row.
      `select h.webhook_id, h.changed_position
       from read.webhook_health h join read.webhook_endpoint e on e.webhook_id = h.webhook_id
       where h.changed_position > ${SINCE}`,
    ],
  },
};
