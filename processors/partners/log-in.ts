import { randomUUID, timingSafeEqual } from 'node:crypto';
import type { CommandContext } from '../../commands/handle.ts';
import { changeUser, userIdOf } from '../../commands/partners/manage-user.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import { hashPassword, isPassword } from '../../platform/crypto/passwords.ts';
import type { ProcessorDeps } from '../deps.ts';
import { type LoginLimits, RATES } from './login-limits.ts';
import type { ChangingLogin, LoginDetails, Logins } from './logins.ts';
import { passwordOf } from './passwords.ts';
import type { SecondFactors } from './second-factor.ts';

/**
 * Logs users into the dashboard by name and password, then by a code where the user has a second factor, and limits what is wrong.
 * A successful login gives the browser a signed device cookie. An attempt that shows the cookie of its user spends a rate of its own,
 * so that nobody else can lock that device out.
 */

/** Time for the code after the password. */
const SECOND_STEP_MS = 10 * MINUTE;

/** Where an attempt comes from. */
interface Origin {
  /** Keyed digest of the visitor's network, because rate names are stored. */
  readonly network: string;
  /** The device cookie; null: none was sent. */
  readonly device: string | null;
  /** In words; null: not known. */
  readonly browser: string | null;
}

interface LoginAttempt extends Origin {
  readonly name: string;
  readonly password: string;
}

interface CodeAttempt extends Origin {
  readonly secondStep: string;
  readonly code: string;
}

type LoginOutcome =
  | { readonly token: string; readonly device: string }
  /** The password is right, and a code is asked for; signed for the form that sends it. */
  | { readonly secondStep: string }
  /** Too many wrong passwords: seconds until the next attempt is allowed. */
  | { readonly retryAfter: number }
  | 'wrong';

export interface DashboardLogins {
  /** Begins a login. @throws WorkRefused while too many passwords are checked */
  logIn(attempt: LoginAttempt): Promise<LoginOutcome>;
  /** Ends a login's second step. `expired`: the password must be given again. */
  enterCode(attempt: CodeAttempt): Promise<Exclude<LoginOutcome, { secondStep: string }> | 'expired'>;
  /** Checks the password or a code of a user who is logged in. @returns seconds to wait; null: it is right */
  prove(userId: string, passwordOrCode: string): Promise<'wrong' | number | null>;
  /** Ends every login of the user and goes on with a new one. @returns its token, or the seconds until the next try */
  changePassword(
    userId: string,
    given: ChangingLogin & { readonly current: string; readonly password: string },
    context: CommandContext,
  ): Promise<{ readonly token: string } | { readonly retryAfter: number } | 'wrong'>;
}

interface DashboardLoginDeps extends ProcessorDeps {
  readonly limits: LoginLimits;
  readonly logins: Pick<Logins, 'begin' | 'changePassword'>;
  readonly factors: Pick<SecondFactors, 'isSetUp' | 'take'>;
  /** Returns a keyed digest. */
  readonly digest: (text: string) => string;
}

export function createDashboardLogins(deps: DashboardLoginDeps): DashboardLogins {
  const { pool, store, clock, limits, logins, factors } = deps;
  const { deviceOf, deviceId, secondStepOf } = createSignatures(deps.digest);

  /** Returns the user who has given the password, with its hash; null: too long ago, or made up. */
  async function findSecondStep(secondStep: string) {
    const [userId = '', at = ''] = secondStep.split('.');
    const age = clock.now() - Number(at);
    if (!UUID.test(userId) || !(age > -MINUTE && age < SECOND_STEP_MS)) return null;
    const hash = await passwordOf(pool, userId);
    return hash !== null && isSame(secondStep, secondStepOf(userId, at, hash)) ? { userId, hash } : null;
  }

  async function begin(userId: string, hash: string, device: string | null, details: LoginDetails) {
    const token = await logins.begin(userId, hash, details);
    return token === null ? 'wrong' : { token, device: deviceOf(userId, device ?? randomUUID()) };
  }

  return {
    logIn: async ({ name, password, network, device, browser }) => {
      const userId = userIdOf(name);
      const knownDevice = deviceId(userId, device);
      const rates =
        knownDevice === null
          ? [
              RATES.passwordsFrom(network),
              RATES.passwordsOfUserFrom(userId, network),
              RATES.passwordsOfUser(userId),
            ]
          : [RATES.passwordsOfDevice(knownDevice)];
      const retryAfter = await limits.take(...rates);
      if (retryAfter !== null) return { retryAfter };
      const hash = await passwordOf(pool, userId);
      const isRight = await limits.checked(rates, () => isPassword(password, hash));
      if (!isRight || hash === null) return 'wrong';
      if (await factors.isSetUp(userId))
        return { secondStep: secondStepOf(userId, String(clock.now()), hash) };
      return begin(userId, hash, knownDevice, { browser, withSecondFactor: false });
    },

    enterCode: async ({ secondStep, code, network, device, browser }) => {
      const proven = await findSecondStep(secondStep);
      if (proven === null) return 'expired';
      const { userId, hash } = proven;
      const knownDevice = deviceId(userId, device);
      const rates =
        knownDevice === null
          ? [RATES.codesOfUserFrom(userId, network), RATES.codesOfUser(userId)]
          : [RATES.codesOfDevice(knownDevice)];
      const retryAfter = await limits.take(...rates);
      if (retryAfter !== null) return { retryAfter };
      if (!(await limits.checked(rates, () => factors.take(userId, code)))) return 'wrong';
      return begin(userId, hash, knownDevice, { browser, withSecondFactor: true });
    },

    prove: async (userId, passwordOrCode) => {
      const rates = [RATES.proofsOfUser(userId)];
      const wait = await limits.take(...rates);
      if (wait !== null) return wait;
      const isRight = await limits.checked(
        rates,
        async () =>
          (await factors.take(userId, passwordOrCode)) ||
          isPassword(passwordOrCode, await passwordOf(pool, userId)),
      );
      return isRight ? null : 'wrong';
    },

    changePassword: async (userId, { current, password, ...login }, context) => {
      const rates = [RATES.proofsOfUser(userId)];
      const retryAfter = await limits.take(...rates);
      if (retryAfter !== null) return { retryAfter };
      const known = await passwordOf(pool, userId);
      const isRight = await limits.checked(rates, () => isPassword(current, known));
      if (!isRight || known === null) return 'wrong';
      const hash = await hashPassword(password);
      // If an operator has reset the password meanwhile, that one stays.
      const next = { userId, hash, isFirst: false, at: clock.now() };
      const token = await logins.changePassword(next, known, login);
      if (token === null) return 'wrong';
      await changeUser(store, 'ChangePassword', userId, context);
      return { token };
    },
  };
}

/** What a browser keeps and sends back, signed by the service. */
function createSignatures(digest: (text: string) => string) {
  /** Signed for one user. */
  const deviceOf = (userId: string, id: string): string => `${id}.${digest(`device ${id} of ${userId}`)}`;
  return {
    deviceOf,
    /** Returns the id in a device cookie of this user; null: it is not one. */
    deviceId: (userId: string, cookie: string | null): string | null => {
      const [id = ''] = (cookie ?? '').split('.', 1);
      return isSame(cookie ?? '', deviceOf(userId, id)) ? id : null;
    },
    /** Signed for one user and password, which a change in between ends. */
    secondStepOf: (userId: string, at: string, hash: string): string =>
      `${userId}.${at}.${digest(`second step of ${userId} at ${at} with ${hash}`)}`,
  };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
