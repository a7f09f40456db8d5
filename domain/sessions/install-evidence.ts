import { DAY, SECOND } from '../kernel/time.ts';

/** Why a request of a tracker's pixel was refused. */
export type CaptureRefusal =
  | 'wrong_origin'
  | 'untrusted_host'
  | 'invalid_labels'
  | 'invalid_body'
  | 'rate'
  | 'disabled'
  | 'deleted'
  | 'unavailable';

/** What the install check of a tracker counts. */
export type EvidenceKind = 'script' | 'visit' | 'crawler' | 'prefetch' | CaptureRefusal;

/** Newest origins that were wrong, and newest hosts that are not trusted, that are kept of a tracker. */
export const MAX_DETAILS = 20;
export const MAX_DETAIL_LENGTH = 255;

/** Tabs are counted up to here: so many from one address look like a proxy that hides all visitors. */
export const ENOUGH_TABS = 5;

export const EVIDENCE_KEPT_MS = 7 * DAY;

/** How late the evidence may be, and how much of it a crash loses. */
export const EVIDENCE_LATE_MS = 10 * SECOND;
