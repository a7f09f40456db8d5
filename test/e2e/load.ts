/** Callers that submit and poll without a pause and record the answers. */
import type { Service } from '../support/service.ts';

export interface Caller {
  readonly key: string;
  readonly partner_id: string;
}

export interface CallerRecord {
  /** Addresses that a 200 or 202 acknowledged, by partner. */
  readonly acknowledged: Map<string, Set<string>>;
  /** Answers that count as usage, by key. */
  readonly counted: Map<string, number>;
  /** Calls by key that may or may not be counted: without an answer, or with one that reports this. */
  readonly uncertain: Map<string, number>;
  /** Answers with a status that no lookup may have here. */
  readonly unexpected: string[];
  answers: number;
}

export const emptyRecord = (): CallerRecord => ({
  acknowledged: new Map(),
  counted: new Map(),
  uncertain: new Map(),
  unexpected: [],
  answers: 0,
});

export const oneMore = (counts: Map<string, number>, key: string): void =>
  void counts.set(key, (counts.get(key) ?? 0) + 1);

const PER_KEY = 2;
const AGAIN_MS = 20;

/**
 * Starts callers with each key on addresses from `nextIp`; they tolerate an unavailable service.
 * @returns stops the callers after their current call
 */
export const startLoad = (
  service: Pick<Service, 'call'>,
  callers: readonly Caller[],
  nextIp: () => string,
  record: CallerRecord,
): (() => Promise<void>) => {
  let stopping = false;
  const recent: string[] = [];

  const note = ({ key, partner_id }: Caller, ip: string, status: number, code: string | undefined): void => {
    record.answers += 1;
    // A 503 may precede the authentication of the key, or report that the call could not be counted.
    oneMore(status === 503 ? record.uncertain : record.counted, key);
    if (status === 200 || status === 202) {
      const known = record.acknowledged.get(partner_id) ?? new Set();
      record.acknowledged.set(partner_id, known.add(ip));
    } else if (status !== 404 && status !== 503) record.unexpected.push(`${status} ${code}`);
  };

  const once = async (caller: Caller, n: number): Promise<void> => {
    // A third of the calls request addresses that other callers request too.
    const ip = n % 3 === 0 ? (recent[n % recent.length] ?? nextIp()) : nextIp();
    if (n % 3 !== 0) recent[n % 50] = ip;
    const { key } = caller;
    const get = n % 4 === 3;
    const answer = get
      ? await service.call('GET', `/v1/lookup?ip=${ip}`, { key })
      : await service.call('POST', '/v1/lookup', { key, body: { ip } });
    note(caller, ip, answer.status, answer.body?.error?.code);
  };

  const run = async (caller: Caller, first: number): Promise<void> => {
    for (let n = first; !stopping; n += 1) {
      await once(caller, n).catch(() => {
        oneMore(record.uncertain, caller.key);
        return new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      });
    }
  };

  const running = Promise.all(
    callers.flatMap((caller, index) =>
      Array.from({ length: PER_KEY }, (_, n) => run(caller, index * 1_000 + n * 100)),
    ),
  );
  return async () => {
    stopping = true;
    await running;
  };
};
