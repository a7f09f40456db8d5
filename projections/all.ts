import { revealUnits } from './billing/reveal-units.ts';
import { domains } from './domains/domains.ts';
import { lookups } from './lookup/lookups.ts';
import { partners } from './partners/keys.ts';
import type { Projection } from './projection.ts';
import { reveals } from './reveals/reveals.ts';
import { sessions } from './sessions/sessions.ts';
import { profiles } from './signals/profiles.ts';
import { signals } from './signals/signals.ts';
import { trackers } from './trackers/trackers.ts';
import { usage } from './usage/lookup-counts.ts';
import { trackerUsage } from './usage/tracker-usage.ts';
import { deliveries } from './webhooks/deliveries.ts';
import { webhooks } from './webhooks/endpoints.ts';
import { payloads } from './webhooks/payloads.ts';

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
  webhooks,
  deliveries,
  payloads,
  domains,
  signals,
  profiles,
];
