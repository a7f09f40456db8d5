/** What people are shown of endpoints beyond the API's answers. */
import type { DeliveryError } from '../../domain/webhooks/events.ts';

/**
 * `held_back`: ten attempts in a row have failed, so one delivery at a time probes the endpoint. `suspended`: its partner is. `unused`:
 * no attempt was made.
 */
export type EndpointState =
  | 'healthy'
  | 'failing'
  | 'held_back'
  | 'paused'
  | 'suspended'
  | 'deleted'
  | 'unused';

export interface EndpointHealth {
  readonly webhook_id: string;
  readonly name: string;
  readonly url: string;
  readonly state: EndpointState;
  /** When it was held back, paused, suspended or deleted. */
  readonly since: string | null;
  readonly pending: number;
  readonly failures_in_row: number;
  readonly last_attempt_at: string | null;
  /** Error of the last attempt; null: it succeeded, or an earlier release recorded it. */
  readonly error: DeliveryError | null;
  readonly http_status: number | null;
  /** null: nothing waits, or nothing is sent. In the past: at any moment. */
  readonly next_try_at: string | null;
}

/** The attempts of one UTC hour. */
export interface HourOfAttempts {
  readonly hour: string;
  readonly attempts: number;
  readonly delivered: number;
  /** Attempts with an HTTP response, and the sum of their durations in milliseconds. */
  readonly answered: number;
  readonly answered_ms: number;
}

type Failure = Pick<EndpointHealth, 'error' | 'http_status'>;

const ERRORS = {
  timeout: 'timeout',
  dns: 'DNS error',
  connect: 'connection error',
  tls: 'TLS error',
  blocked_address: 'blocked address',
  own_origin: 'the URL leads to this service',
} as const;

/** Why an attempt failed, in a few words: `HTTP 503`, `timeout`. '' where that is not known. */
export function failureText({ error, http_status }: Failure): string {
  if (error === null) return http_status === null ? '' : `HTTP ${http_status}`;
  if (error === 'redirect') return `redirect (HTTP ${http_status})`;
  return error === 'http_status' ? `HTTP ${http_status}` : ERRORS[error];
}
