import type { Config } from '../../platform/config/config.ts';
import type { RateLimiter, Verdict } from '../../platform/limits/rate-limit.ts';

type Ceilings = Pick<
  Config,
  'CAPTURES_PER_SECOND' | 'CAPTURES_PER_SECOND_PER_TRACKER' | 'CAPTURES_PER_SECOND_PER_VISITOR'
>;

type Rate = readonly [name: string, ceiling: number];

export interface CaptureRates {
  /** Spends the rate of the visitor, before anything is known of the request. */
  admitVisitor(ip: string): Verdict | Promise<Verdict>;
  /** Spends the rates of the tracker and of the service. A refusal spends neither, and gives back the visitor's. */
  admitCapture(trackerId: string, ip: string): Promise<Verdict>;
}

/**
 * Creates the three windows of captures: visitor, tracker and service. Below all three every capture is taken, whoever else sends
 * (contract, Pixel 5).
 * @param visitorOf a digest of the visitor's address or network, because rate names may be stored
 */
export function createCaptureRates(
  config: Ceilings,
  limiter: Pick<RateLimiter, 'admit' | 'giveBack'>,
  visitorOf: (ip: string) => string,
): CaptureRates {
  const ofVisitor = (ip: string): Rate => [
    `visitor ${visitorOf(ip)}`,
    config.CAPTURES_PER_SECOND_PER_VISITOR,
  ];
  return {
    admitVisitor: (ip) => limiter.admit(...ofVisitor(ip)),
    admitCapture: async (trackerId, ip) => {
      const taken = [ofVisitor(ip)];
      const wanted: Rate[] = [
        [`captures of ${trackerId}`, config.CAPTURES_PER_SECOND_PER_TRACKER],
        ['captures', config.CAPTURES_PER_SECOND],
      ];
      for (const rate of wanted) {
        const admission = limiter.admit(...rate);
        // Not awaited in a single process: no other capture meets a rate that may be given back.
        const verdict = admission instanceof Promise ? await admission : admission;
        if (verdict !== null) {
          for (const before of taken) await limiter.giveBack(...before);
          return verdict;
        }
        taken.push(rate);
      }
      return null;
    },
  };
}
