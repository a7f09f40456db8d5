/** What ends first as traffic grows, how it is seen and what to do about it. */
import type { Figures, GroupName } from './figures.ts';
import { HEADROOM, type Needs, needsOf, STEPS, type Store, type Traffic } from './model.ts';

/** `setting`: a limit that a variable sets. The others come from measured figures, with the headroom of a core. */
export type LimitKind = 'setting' | 'measured' | 'calculated';

export interface Limit {
  readonly name: string;
  readonly from: LimitKind;
  /** Share that is used; from 1 on it is passed. */
  readonly used: (needs: Needs) => number;
  /** No setting and no further process raises it: more installations do. */
  readonly divides?: boolean;
  /** Lines of `doorplate status`, metrics and alerts (docs/runbook.md). */
  readonly seen: string;
  /** What to do, with the heading that says more. */
  readonly remedy: string;
}

/** Variables of the service, and PostgreSQL's `max_connections`. */
export interface Settings {
  readonly API_REQUESTS_PER_SECOND: number;
  readonly ENRICHMENT_INTAKE_PER_MINUTE: number;
  readonly CAPTURES_PER_SECOND: number;
  readonly REVEALS_PER_SECOND: number;
  readonly WEBHOOK_STARTS_PER_SECOND: number;
  readonly max_connections: number;
}

const GROUP_SEEN = 'status: "Projections and processors" (behind); doorplate_behind_seconds; DoorplateBehind';
const INSTALLATIONS = 'divide the partners over more installations (docs/scaling.md, More installations)';

/** Returns the limits of an installation with these settings. */
export function limitsOf(figures: Figures, store: Store, traffic: Traffic, settings: Settings): Limit[] {
  const { cores } = figures.machine;
  const set = (name: keyof Settings, used: Limit['used'], seen: string, remedy: string): Limit => ({
    name: `${name} (${settings[name].toLocaleString('en')})`,
    from: 'setting',
    used: (needs) => used(needs) / settings[name],
    seen,
    remedy,
  });
  const group = (name: GroupName): Limit => ({
    name: `the projections of the group ${name}`,
    from: 'measured',
    used: ({ applied }) => applied[name] / (figures.group_events_per_second * HEADROOM),
    divides: true,
    seen: GROUP_SEEN,
    remedy: `give workers a machine of their own, then ${INSTALLATIONS}`,
  });
  return [
    {
      name: 'one process with both roles',
      from: 'calculated',
      used: ({ cores: { api, workers } }) => (api + workers) / HEADROOM,
      seen: 'doorplate_nodejs_eventloop_lag_p99_seconds; DoorplateEventLoopLags, DoorplateSlowLookups',
      remedy:
        'run --role api and --role workers apart, as many as the table says (docs/configuration.md, Roles)',
    },
    ...(store === 'postgresql' ? [oneMachine(cores)] : []),
    set(
      'CAPTURES_PER_SECOND',
      ({ peak }) => peak.visit,
      'doorplate_captures_total{outcome="refused",reason="tracking_capacity"}',
      'raise it and CAPTURES_PER_SECOND_PER_TRACKER, if the disk holds it (docs/runbook.md, Size of the data)',
    ),
    set(
      'API_REQUESTS_PER_SECOND',
      ({ peak }) => peak.saved_lookup + peak.new_lookup + peak.reveal,
      'doorplate_http_answer_seconds_count{status="429"}; callers see api_rate_limit',
      'raise it (docs/configuration.md, Variables)',
    ),
    set(
      'ENRICHMENT_INTAKE_PER_MINUTE',
      ({ peak }) => peak.new_lookup * 60,
      'doorplate_http_answer_seconds_count{status="429"}; callers see enrichment_capacity',
      'raise it, as far as the providers answer (docs/runbook.md, When something is wrong)',
    ),
    set(
      'REVEALS_PER_SECOND',
      ({ peak }) => peak.reveal,
      'doorplate_http_answer_seconds_count{status="429"}; callers see tracking_capacity',
      'nothing unless one partner makes them all; then raise it (docs/configuration.md, Variables)',
    ),
    ...(traffic.endpoints === 0
      ? []
      : [
          set(
            'WEBHOOK_STARTS_PER_SECOND',
            ({ peak }) => peak.delivery / traffic.endpoints,
            'status: "Deliveries" (due), condition deliveries_late; doorplate_webhook_oldest_due_seconds',
            'raise it if the receivers take more, or spread trackers over more endpoints (docs/configuration.md, Variables)',
          ),
        ]),
    set(
      'max_connections',
      ({ connections }) => connections,
      'status: "Ceilings" (max_connections), condition connections_near; DoorplateStoreUnreachable at its end',
      'raise it in PostgreSQL (docs/runbook.md, When something is wrong)',
    ),
    group('visits'),
    group('lookups'),
    group('webhooks'),
    {
      name: 'the queueing of webhook events',
      from: 'measured',
      used: ({ fanned_out }) => fanned_out / (figures.fanned_out_per_second * HEADROOM),
      divides: true,
      seen: 'status: "Projections and processors" (queue-webhook-events); doorplate_webhook_first_attempt_seconds; DoorplateBehind',
      remedy: `give workers a machine of their own, then ${INSTALLATIONS}`,
    },
    store === 'postgresql' ? appends(figures) : oneNode(cores),
  ];
}

const appends = ({ appends_per_second }: Figures): Limit => ({
  name: 'appends to the log in PostgreSQL',
  from: 'measured',
  used: ({ events }) => events / (appends_per_second * HEADROOM),
  divides: true,
  seen: 'doorplate_http_answer_seconds; DoorplateSlowLookups, DoorplateErrors (usage_unavailable)',
  remedy: `put the WAL on faster disks, or the log on EventStoreDB before the first event, then ${INSTALLATIONS}`,
});

const oneNode = (cores: number): Limit => ({
  name: `an EventStoreDB node of ${cores} cores`,
  from: 'calculated',
  used: ({ cores: { eventstoredb } }) => eventstoredb / (cores * HEADROOM),
  seen: "doorplate_http_answer_seconds; DoorplateSlowLookups; node_exporter's CPU of the nodes",
  remedy: 'give the nodes more cores (docs/configuration.md, Event store servers)',
});

const oneMachine = (cores: number): Limit => ({
  name: `one machine of ${cores} cores for everything`,
  from: 'calculated',
  used: ({ cores: { api, workers, postgresql } }) => (api + workers + postgresql) / (cores * HEADROOM),
  seen: "DoorplateEventLoopLags, DoorplateSlowLookups; node_exporter's CPU",
  remedy:
    'give PostgreSQL a machine of its own, then each role (DATABASE_URL; docs/configuration.md, Variables)',
});

/** A limit and the multiple of the traffic at which it is passed. */
export interface Break {
  readonly limit: Limit;
  readonly at: number;
}

/** Multiples below and above which nobody needs to know. */
const [LEAST, MOST] = [0.001, STEPS[STEPS.length - 1] ?? 1];
const HALVINGS = 40;

/** Returns the limits that are passed up to the largest step, those first that are passed first. */
export function breaksOf(figures: Figures, store: Store, traffic: Traffic, settings: Settings): Break[] {
  const isPassed = (limit: Limit, times: number): boolean =>
    limit.used(needsOf(figures, store, traffic, times)) > 1;
  return limitsOf(figures, store, traffic, settings)
    .filter((limit) => isPassed(limit, MOST))
    .map((limit) => {
      let [low, high] = [Math.log(LEAST), Math.log(MOST)];
      for (let n = 0; n < HALVINGS; n += 1) {
        const middle = (low + high) / 2;
        if (isPassed(limit, Math.exp(middle))) high = middle;
        else low = middle;
      }
      return { limit, at: Math.exp(high) };
    })
    .sort((a, b) => a.at - b.at);
}

/** Returns the number of installations that partners must be divided over, so that none passes a limit that nothing else raises. */
export function installationsOf(limits: readonly Limit[], needs: Needs): number {
  const shares = limits.filter(({ divides }) => divides).map(({ used }) => used(needs));
  return Math.max(1, Math.ceil(Math.max(...shares)));
}
