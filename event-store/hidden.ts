import type { RecordedEvent } from './port.ts';

/** Whether an event is past its `expires_at`: it counts as deleted, whether the store has deleted it or not. */
export const isHidden = ({ metadata }: RecordedEvent, now: number): boolean =>
  metadata?.expires_at !== undefined && Date.parse(metadata.expires_at) <= now;
