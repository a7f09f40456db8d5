/** What a condition of an installation is. `conditions.ts` lists all of them. */
import type pg from 'pg';
import type { Config } from '../platform/config/config.ts';
import type { Facts } from './facts.ts';

/** An installation with an `error` is not healthy. */
export type Severity = 'error' | 'warning';

/**
 * Where a condition is reported: by `doorplate status`, as the metric `doorplate_condition`, by the operator's webhook as
 * `operator.<code>`, and to the partner on the dashboard's home page.
 */
export type Channel = 'status' | 'metrics' | 'webhook' | 'dashboard';

/** The tables and settings that conditions are read from. */
export interface ConditionContext {
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
   * Returns what distinguishes the occurrences of one subject: the webhook sends one alert for each. Default: one occurrence.
   * With several `alertAfterHours` it must return `hours`, or only the first of them is sent.
   * @param began start of the current occurrence (ISO 8601)
   * @param hours the entry of `alertAfterHours` that the alert is for
   */
  readonly occurrence?: (began: string, hours: number) => readonly (string | number)[];
  readonly data: (began: string, hours: number) => object;
  /** Whether the occurrence goes on without being reported to the operator by any channel. Default: false. */
  readonly isQuiet?: boolean;
}

/** A condition's subject, in the words of each channel. */
export interface Found {
  readonly code: string;
  readonly severity: Severity;
  /** One line for the operator; '' if the condition is for partners alone. */
  readonly text: string;
  readonly alert?: Alert;
  /** null: the partner need not look. */
  readonly notice?: Notice | null;
}

export interface Condition {
  readonly code: string;
  /** null: each subject has its own. */
  readonly severity: Severity | null;
  readonly channels: readonly Channel[];
  /** Whether it is read every five minutes instead of every 15 seconds, because its query reads many rows. */
  readonly isSlow: boolean;
  /** Hours after its start at which the operator's webhook sends an alert. */
  readonly alertAfterHours: readonly number[];
  /** Finds the subjects of which it holds now, in the tables that every process can read. */
  readonly findInTables: (context: ConditionContext) => Promise<readonly Found[]>;
  /** Finds the subjects of which it holds now, in what only `doorplate status` reads. */
  readonly findInFacts: (facts: Facts) => readonly Found[];
}

interface Definition<Subject> extends Partial<Pick<Condition, 'isSlow' | 'alertAfterHours'>> {
  readonly code: string;
  readonly severity: Severity;
  readonly subjects: (context: ConditionContext) => Promise<readonly Subject[]>;
  /** For the operator, in status and metrics. */
  readonly text?: (subject: Subject) => string;
  readonly alert?: (subject: Subject) => Alert;
  /** For the partner; null: the partner need not look. */
  readonly notice?: (subject: Subject) => Notice | null;
}

/** Defines a condition that every process can read, from the tables. The texts that it has decide its channels. */
export function condition<Subject>(defined: Definition<Subject>): Condition {
  const { code, severity, subjects, text, alert, notice } = defined;
  return {
    code,
    severity,
    isSlow: defined.isSlow ?? false,
    alertAfterHours: defined.alertAfterHours ?? [0],
    channels: [
      ...(text ? (['status', 'metrics'] as const) : []),
      ...(alert ? (['webhook'] as const) : []),
      ...(notice ? (['dashboard'] as const) : []),
    ],
    findInTables: async (context) =>
      (await subjects(context)).map((subject) => ({
        code,
        severity,
        text: text?.(subject) ?? '',
        ...(alert && { alert: alert(subject) }),
        ...(notice && { notice: notice(subject) }),
      })),
    findInFacts: () => [],
  };
}

/** Defines a condition that only `doorplate status` can read, from `facts.ts`. */
export const statusCondition = (
  code: string,
  findInFacts: (facts: Facts) => readonly Omit<Found, 'code'>[],
): Condition => ({
  code,
  severity: null,
  channels: ['status'],
  isSlow: false,
  alertAfterHours: [],
  findInTables: async () => [],
  findInFacts: (facts) => findInFacts(facts).map((found) => ({ code, ...found })),
});

/** Returns the heading of the runbook that says what to do: its anchor is the code. */
export const runbookOf = ({ code }: Pick<Condition, 'code'>): string => `docs/runbook.md#${code}`;
