import { setTimeout } from 'node:timers/promises';
import type { VisitorDeps } from '../processors/erase-visitor.ts';
import { forgetLookupStream } from '../projections/lookup/lookups.ts';
import { followersOf } from './groups.ts';
import type { Runtime } from './runtime.ts';

/** Longer than a process knows an erased session, and than it waits before it writes uses of results. */
const LATE_MS = 2_500;

/** Returns what erasures need. `signal`: ends them early; a repeat completes them. */
export const erasureDeps = (runtime: Runtime, signal: AbortSignal): VisitorDeps => ({
  ...runtime,
  consumersOf: (prefix) => followersOf(prefix),
  forgetStream: (stream) => forgetLookupStream(runtime.pool, stream),
  lateMs: LATE_MS,
  pause: (ms) => setTimeout(ms),
  signal,
});
