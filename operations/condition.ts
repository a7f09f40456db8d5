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
  /** The subject keeps its occurrence alive, and no channel tells the operator. Default: false. */
  readonly isQuiet?: boolean;
}

/** A condition's subject, in the words of each channel. */
export interface Found {
  readonly code: string;
  readonly severity: Severity;
  /** One line for the operator. */
  readonly text: string;
  readonly alert?: Alert;
  /** null: the partner need not look. */
  readonly notice?: Notice | null;
}

export interface Condition {
  readonly code: string;
  /** null: of each subject's own. */
  readonly severity: Severity | null;
  readonly channels: readonly Channel[];
  /** It is read every five minutes, not every 15 seconds: its query goes through many rows. */
  readonly isSlow: boolean;
  /** Hours after which the operator's webhook tells it. */
  readonly tellAfter: readonly number[];
  /** Returns what is so now, by the tables. */
  readonly find: (reads: Reads) => Promise<readonly Found[]>;
  /** Returns what is so now, by what `doorplate status` alone sees. */
  readonly findIn: (facts: Facts) => readonly Found[];
}

interface Definition<Subject> extends Partial<Pick<Condition, 'isSlow' | 'tellAfter'>> {
  readonly code: string;
  readonly severity: Severity;
  /** Default: the operator. */
  readonly audience?: 'operator' | 'partner' | 'both';
  readonly subjects: (reads: Reads) => Promise<readonly Subject[]>;
  readonly text: (subject: Subject) => string;
  readonly alert?: (subject: Subject) => Alert;
  readonly notice?: (subject: Subject) => Notice | null;
}

/** Defines a condition that any process reads from the tables. */
export function condition<Subject>(defined: Definition<Subject>): Condition {
  const { code, severity, audience = 'operator', subjects, text, alert, notice } = defined;
  const ofOperator: Channel[] = alert ? ['status', 'metrics', 'webhook'] : ['status', 'metrics'];
  return {
    code,
    severity,
    isSlow: defined.isSlow ?? false,
    tellAfter: defined.tellAfter ?? [0],
    channels: [
      ...(audience === 'partner' ? [] : ofOperator),
      ...(audience === 'operator' ? [] : (['dashboard'] as const)),
    ],
    find: async (reads) =>
      (await subjects(reads)).map((subject) => ({
        code,
        severity,
        text: text(subject),
        ...(alert && { alert: alert(subject) }),
        ...(notice && { notice: notice(subject) }),
      })),
    findIn: () => [],
  };
}

/** Defines a condition that `doorplate status` alone reads. */
export const statusCondition = (
  code: string,
  findIn: (facts: Facts) => readonly Omit<Found, 'code'>[],
): Condition => ({
  code,
  severity: null,
  channels: ['status'],
  isSlow: false,
  tellAfter: [],
  find: async () => [],
  findIn: (facts) => findIn(facts).map((found) => ({ code, ...found })),
});

/** Returns the heading of the runbook that says what to do: its anchor is the code. */
export const runbookOf = ({ code }: Pick<Condition, 'code'>): string => `docs/runbook.md#${code}`;
