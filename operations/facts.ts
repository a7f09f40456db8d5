/** What `doorplate status` alone sees of an installation, beside the tables that all processes read. */
import type { ProcessState } from '../queries/processes.ts';

/** A store, or why it cannot be used. */
export interface StoreState {
  readonly kind: 'postgresql' | 'eventstoredb';
  readonly version: string | null;
  readonly latency_ms: number | null;
  /** The day (`YYYY-MM-DD`) on which the vendor's support of this version ends; null if it is not known. */
  readonly supported_until: string | null;
  /** One line for the operator; null: it answers. */
  readonly error: string | null;
  readonly read_only: boolean;
}

export interface ConsumerState {
  readonly name: string;
  /** Events that it has not passed; counted up to 10,000. */
  readonly lag_events: number;
  /** Age of the first of them. */
  readonly lag_ms: number;
  readonly state: 'current' | 'behind' | 'stopped';
  /** The event that stopped it, and why; null: none. */
  readonly stopped_by: string | null;
}

/** A certificate of TLS that the service's own name shows. */
export interface Certificate {
  readonly host: string;
  readonly expires_at: string | null;
  readonly error: string | null;
}

export interface Disk {
  readonly used_bytes: number | null;
  readonly growth_bytes_per_day: number | null;
  /** Of the file system that holds the embedded database. */
  readonly free_bytes: number | null;
  readonly size_bytes: number | null;
}

/** What could not be read is empty or null; `unread` says why. */
export interface Facts {
  /** Milliseconds. */
  readonly at: number;
  readonly stores: readonly StoreState[];
  readonly processes: readonly ProcessState[];
  /** Groups without a process that leads them. */
  readonly unled: readonly string[];
  readonly projections: readonly ConsumerState[];
  readonly processors: readonly ConsumerState[];
  readonly disk: Disk;
  readonly certificates: readonly Certificate[];
  readonly unread: readonly string[];
}
