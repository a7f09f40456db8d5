import { AsyncLocalStorage } from 'node:async_hooks';
import { createDebts } from '../platform/debts.ts';

const partners = new AsyncLocalStorage<string>();

/** Does work for a partner, whose share of what all partners use it spends. */
export const onBehalfOf = <T>(partnerId: string, work: () => T): T => partners.run(partnerId, work);

/** The partner that the work around is done for; undefined: it is the service's own. */
export const servedPartner = (): string | undefined => partners.getStore();

/** Bytes of answers to one partner at once, and a second: making a megabyte takes the event loop 20 to 40 ms. */
const BURST_BYTES = 8 * 1_048_576;
const BYTES_PER_SECOND = 4 * 1_048_576;
/** Shorter answers cost about the same whatever their length. */
const SHORT_BYTES = 16_384;
const answered = createDebts(BYTES_PER_SECOND);

/** Notes how long an answer to a partner was. */
export const chargeAnswer = (partnerId: string, bytes: number): void => {
  if (bytes > SHORT_BYTES) answered.charge(partnerId, bytes);
};

/** Returns after how many milliseconds the partner's next answer may be made. */
export const answerWaitMs = (partnerId: string): number =>
  (Math.max(0, answered.owed(partnerId) - BURST_BYTES) / BYTES_PER_SECOND) * 1_000;
