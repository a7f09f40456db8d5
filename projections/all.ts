import { activity } from './activity/activity.ts';
import { revealUnits } from './billing/reveal-units.ts';
import { domains } from './domains/domains.ts';
import { lookups } from './lookup/lookups.ts';
import { partners } from './partners/keys.ts';
import { team } from './partners/team.ts';
import type { Projection } from './projection.ts';
import { reveals } from './reveals/reveals.ts';
import { sessions } from './sessions/sessions.ts';
import { profiles } from './signals/profiles.ts';
import { signals } from './signals/signals.ts';
import { trackers } from './trackers/trackers.ts';
import { usage } from './usage/lookup-counts.ts';
import { trackerUsage } from './usage/tracker-usage.ts';
import { deliveries } from './webhooks/deliveries/projection.ts';
import { endpoints } from './webhooks/endpoints/projection.ts';
import { payloads } from './webhooks/payloads/projection.ts';

/** Projections that run in one process and share one transaction per batch. */
export interface ProjectionGroup {
  readonly name: string;
  /** In the order in which a batch is applied. */
  readonly projections: readonly Projection[];
  /** How long events may wait for a batch while nobody waits for them, in milliseconds. Default: as long as the tail waits. */
  readonly gatherMs?: number;
}

/** Events that often arrive together share a group, for example the count of a capture and its session. */
export const projectionGroups = {
  lookups: { name: 'lookups', projections: [partners, team, lookups] },
  visits: {
    name: 'visits',
    projections: [usage, trackerUsage, trackers, sessions, reveals, revealUnits, domains, activity],
    gatherMs: 500,
  },
  webhooks: { name: 'webhooks', projections: [endpoints, deliveries, payloads] },
  signals: { name: 'signals', projections: [signals, profiles] },
} as const satisfies Readonly<Record<string, ProjectionGroup>>;

/** All read models. */
export const allProjections: readonly Projection[] = Object.values(projectionGroups).flatMap(
  ({ projections }): readonly Projection[] => projections,
);
