/** What a condition of an installation is. `conditions.ts` lists all of them. */
import type pg from 'pg';
import type { Config } from '../platform/config/config.ts';
import type { Facts } from './facts.ts';

/** An installation with an `error` is not healthy. */
export type Severity = 'error' | 'warning';

/**
 * Where a condition is told: by `doorplate status`, as the metric `doorplate_condition`, by the operator's webhook as
 * `operator.<code>`, and to the partner on the dashboard's home page.
 */
export type Channel = 'status' | 'metrics' | 'webhook' | 'dashboard';

/** What conditions are read from. */
export interface Reads {
  readonly pool: pg.Pool;
  /** Milliseconds. */
  readonly now: number;
  /** null: all partners. */
  readonly partnerId: string | null;
  readonly config: Pick<
    Config,
    | 'ENRICHMENT_OUTSTANDING'
    | 'WEBHOOK_QUEUE_PER_PARTNER'
    | 'WEBHOOK_PAYLOAD_BYTES_PER_PARTNER'
    | 'OPERATOR_WEBHOOK_URL'
    | 'providers'
  >;
}

/** What a partner reads on the dashboard. */
export interface Notice {
  /** bad: something is broken. wait: it will be. */
  readonly tone: 'bad' | 'wait';
  readonly text: string;
  readonly href: string;
  /** The link's text: what to do. */
  readonly action: string;
}

/** The namespace of the ids of alerts, which are made from what they name. */
export const ALERT_NAMESPACE = '3a1f7f0a-3a53-4c6e-8a0e-5b9b0c7d1e42';

/** What the operator's webhook sends of a condition's subject. */
export interface Alert {
  /** Names the subject among those of its condition. */
  readonly about: string;
  /**
   * Tells apart the occurrences of one subject, each of which is told once. Default: there is one.
   * @param began when the condition was first seen, since it was last not seen (ISO 8601)
   * @param hours those of `tellAfter`
   */
  readonly occurrence?: (began: string, hours: number) => readonly (string | number)[];
  readonly data: (began: string, hours: number) => object;
  /** The subject keeps its occurrence alive, and no channel tells it. Default: false. */
  readonly isQuiet?: boolean;
}

interface Told<Subject> {
  readonly code: string;
  readonly severity: Severity | ((subject: Subject) => Severity);
  /** One line for the operator. */
  readonly text: (subject: Subject) => string;
}

/** A condition that any process can read from the tables. */
export interface TableCondition<Subject> extends Told<Subject> {
  readonly audience: 'operator' | 'partner' | 'both';
  readonly subjects: (reads: Reads) => Promise<readonly Subject[]>;
  /** It is read every five minutes, not every 15 seconds: its query goes through many rows. Default: false. */
  readonly isSlow?: boolean;
  readonly alert?: (subject: Subject) => Alert;
  /** Hours after which the operator is told. Default: at once. */
  readonly tellAfter?: readonly number[];
  readonly notice?: (subject: Subject) => Notice;
}

/** A condition that `doorplate status` alone can read. */
export interface StatusCondition<Subject> extends Told<Subject> {
  readonly ofFacts: (facts: Facts) => readonly Subject[];
}

/** A condition's subject, in the words of each channel. */
export interface Found {
  readonly code: string;
  readonly severity: Severity;
  readonly text: string;
  readonly alert: Alert | null;
  readonly notice: Notice | null;
}

export interface Condition {
  readonly code: string;
  readonly channels: readonly Channel[];
  readonly isSlow: boolean;
  readonly tellAfter: readonly number[];
  /** Severities that its subjects may have. */
  readonly severities: readonly Severity[];
  /** Returns what is so now; of a condition of `status` without facts nothing. */
  readonly find: (reads: Reads) => Promise<readonly Found[]>;
  readonly findIn: (facts: Facts) => readonly Found[];
}

const BOTH: readonly Severity[] = ['error', 'warning'];

const foundOf =
  <Subject>({ code, severity, text }: Told<Subject>) =>
  (subject: Subject) => ({
    code,
    severity: typeof severity === 'function' ? severity(subject) : severity,
    text: text(subject),
    alert: null,
    notice: null,
  });

/** Defines a condition that is read from the tables. */
export function condition<Subject>(defined: TableCondition<Subject>): Condition {
  const { code, audience, severity, subjects, alert, notice, isSlow = false, tellAfter = [0] } = defined;
  const ofOperator: Channel[] = ['status', 'metrics', ...(alert ? (['webhook'] as const) : [])];
  const found = foundOf(defined);
  return {
    code,
    isSlow,
    tellAfter,
    severities: typeof severity === 'function' ? BOTH : [severity],
    channels: [
      ...(audience === 'partner' ? [] : ofOperator),
      ...(audience === 'operator' ? [] : (['dashboard'] as const)),
    ],
    find: async (reads) =>
      (await subjects(reads)).map((subject) => ({
        ...found(subject),
        alert: alert?.(subject) ?? null,
        notice: notice?.(subject) ?? null,
      })),
    findIn: () => [],
  };
}

/** Defines a condition that `doorplate status` reads. */
export function statusCondition<Subject>(defined: StatusCondition<Subject>): Condition {
  const { code, severity, ofFacts } = defined;
  return {
    code,
    isSlow: false,
    tellAfter: [],
    severities: typeof severity === 'function' ? BOTH : [severity],
    channels: ['status'],
    find: async () => [],
    findIn: (facts) => ofFacts(facts).map(foundOf(defined)),
  };
}

/** Returns the heading of the runbook that says what to do: its anchor is the code. */
export const runbookOf = ({ code }: Pick<Condition, 'code'>): string => `docs/operations.md#${code}`;
