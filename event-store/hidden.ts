import type { RecordedEvent } from './port.ts';

/** Returns whether an event is past its `expires_at` and so counts as deleted, even if the store still has it. */
export const isHidden = ({ metadata }: RecordedEvent, now: number): boolean =>
  metadata?.expires_at !== undefined && Date.parse(metadata.expires_at) <= now;
