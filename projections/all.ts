import { revealUnits } from './billing/reveal-units.ts';
import { lookups } from './lookup/lookups.ts';
import { partners } from './partners/keys.ts';
import type { Projection } from './projection.ts';
import { reveals } from './reveals/reveals.ts';
import { sessions } from './sessions/sessions.ts';
import { trackers } from './trackers/trackers.ts';
import { usage } from './usage/lookup-counts.ts';
import { trackerUsage } from './usage/tracker-usage.ts';

/** Every read model, in the order in which a batch is applied to them. */
export const allProjections: readonly Projection[] = [
  partners,
  lookups,
  usage,
  trackerUsage,
  trackers,
  sessions,
  reveals,
  revealUnits,
];
