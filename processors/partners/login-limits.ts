import { MINUTE } from '../../domain/kernel/time.ts';
import { type RateLimiter, retrySeconds } from '../../platform/limits/rate-limit.ts';

/** What is counted, how often it may happen in a window, and the window in milliseconds. */
type Rate = readonly [name: string, ceiling: number, windowMs: number];

const SECOND = 1_000;
const WINDOW_MS = 15 * MINUTE;
const login = (name: string, ceiling: number): Rate => [`login ${name}`, ceiling, WINDOW_MS];

/** Everything of the dashboard that may happen only so often. A network is a keyed digest, because names of rates are stored. */
export const RATES = {
  /** Wrong passwords, of a browser that is not known as a device of the user. */
  passwordsFrom: (network: string) => login(`from ${network}`, 100),
  passwordsOfUserFrom: (userId: string, network: string) => login(`${userId} ${network}`, 10),
  passwordsOfUser: (userId: string) => login(userId, 1_000),
  /** Wrong passwords of a known device, so that nobody else can lock it out. */
  passwordsOfDevice: (device: string) => login(`device ${device}`, 10),
  /** Wrong codes: who guesses them knows the password already, and three of a million are right at any time. */
  codesOfUserFrom: (userId: string, network: string) => login(`code ${userId} ${network}`, 10),
  codesOfUser: (userId: string) => login(`code ${userId}`, 30),
  codesOfDevice: (device: string) => login(`code device ${device}`, 10),
  /** Wrong passwords and codes of a user who is logged in. */
  proofsOfUser: (userId: string) => login(`change of ${userId}`, 10),
  /** Forms and pages: more than a person needs. They limit scripts that use a person's cookie. */
  formsOfUser: (userId: string): Rate => [`forms of ${userId}`, 60, MINUTE],
  pagesOfUser: (userId: string): Rate => [`pages of ${userId}`, 30, SECOND],
  passwordFormsOfUserFrom: (userId: string, network: string): Rate => [
    `password forms of ${userId} ${network}`,
    60,
    MINUTE,
  ],
  formsOfInvitation: (invitationId: string): Rate => [`joining ${invitationId}`, 20, MINUTE],
};

export interface LoginLimits {
  /** Takes one of each rate, or of none. @returns seconds to wait; null: taken */
  take(...rates: readonly Rate[]): Promise<number | null>;
  /** Checks something that rates were taken for, and gives them back unless the check ends with false. */
  checked(rates: readonly Rate[], check: () => Promise<boolean>): Promise<boolean>;
}

export function createLoginLimits(limiter: Pick<RateLimiter, 'admit' | 'giveBack'>): LoginLimits {
  async function giveBack(rates: readonly Rate[]): Promise<void> {
    for (const rate of rates) await limiter.giveBack(...rate);
  }

  return {
    take: async (...rates) => {
      for (const [nth, rate] of rates.entries()) {
        const verdict = await limiter.admit(...rate);
        if (verdict === null) continue;
        await giveBack(rates.slice(0, nth));
        return retrySeconds(verdict);
      }
      return null;
    },

    checked: async (rates, check) => {
      let isGivenBack = true;
      try {
        isGivenBack = await check();
        return isGivenBack;
      } finally {
        if (isGivenBack) await giveBack(rates);
      }
    },
  };
}
