import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type pg from 'pg';
import type { CommandContext } from '../../commands/handle.ts';
import { recordSecondFactor } from '../../commands/partners/manage-team.ts';
import { composed } from '../../domain/kernel/text.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { Position } from '../../event-store/port.ts';
import { type MasterKey, openText, type SealedText, sealText } from '../../platform/crypto/master-key.ts';
import { withSynchronousCommit } from '../../platform/postgres/transactions.ts';
import type { ProcessorDeps } from '../deps.ts';

/**
 * The second factor of dashboard users: codes of an app (TOTP, RFC 6238) and ten recovery codes. The secret is sealed under the
 * master key, the recovery codes are kept as keyed digests. No event has either.
 */

const STEP_SECONDS = 30;
/** A code of the step before or after counts too, because clocks of telephones differ. */
const WINDOW = 1;
/** Steps by which a last code may lie ahead: further ahead it is a wrong clock's, and does not count. */
const MAX_STEPS_AHEAD = 20;
/** Time between the page that proposes a secret and its first code. */
const PROPOSAL_MS = 10 * MINUTE;
/** Bytes of a secret: the digest size of HMAC-SHA-1, which all apps support. */
const SECRET_BYTES = 20;
const RECOVERY_CODES = 10;
/** Crockford's base 32, five bits a character. */
const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz';
const RECOVERY_BYTES = 10;
const CODE = /^\d{6}$/;

export interface SecondFactors {
  isSetUp(userId: string): Promise<boolean>;
  /** Makes a secret that counts once a first code has proven it, within ten minutes. `about`: binds it to one login. */
  propose(userId: string, userName: string, about: string): Promise<ProposedSecret>;
  /** Opens a proposal of this login again; null: it is none that can still be confirmed. */
  reopen(userId: string, userName: string, about: string, proposal: string): Promise<ProposedSecret | null>;
  /**
   * Sets the second factor up, and ends the user's other logins.
   * @returns the recovery codes; `stale`: the proposal is of another login or key, too old, or was confirmed before; `set`: there
   *   is a second factor already
   */
  enable(
    userId: string,
    given: {
      readonly proposal: string;
      readonly about: string;
      readonly code: string;
      readonly token: string;
    },
  ): Promise<readonly string[] | 'wrong' | 'stale' | 'set'>;
  /** Takes a code of the app or a recovery code; each counts once. */
  take(userId: string, code: string): Promise<boolean>;
  /** Replaces the recovery codes that are left. */
  renewRecoveryCodes(userId: string): Promise<readonly string[]>;
  countRecoveryCodes(userId: string): Promise<number>;
}

export interface ProposedSecret {
  /** Base 32, to type in. */
  readonly secret: string;
  /** The address that apps read as a QR code. */
  readonly uri: string;
  /** The sealed secret, for a form. */
  readonly proposal: string;
}

interface SecondFactorDeps extends Pick<ProcessorDeps, 'pool' | 'clock'> {
  readonly master: MasterKey;
  /** Returns a keyed digest. */
  readonly digest: (text: string) => string;
}

const totpOf = (secret: Secret, label = ''): TOTP =>
  new TOTP({ issuer: 'Doorplate', label, secret, period: STEP_SECONDS });

const secretOf = (bytes: Buffer): Secret => new Secret({ buffer: Uint8Array.from(bytes).buffer });

function shownTo(userName: string, secret: Buffer): Pick<ProposedSecret, 'secret' | 'uri'> {
  // A colon ends the issuer in the address that apps read, however it is escaped.
  const totp = totpOf(secretOf(secret), userName.replaceAll(':', ' '));
  return { secret: totp.secret.base32, uri: totp.toString() };
}

const sealedFor = (userId: string): string => `second factor of ${userId}`;

export function createSecondFactors({ pool, clock, master, digest }: SecondFactorDeps): SecondFactors {
  /** Returns the step of a code; null: it is wrong. */
  function stepOf(secret: Buffer, code: string): number | null {
    const token = composed(code).replaceAll(/\s/g, '');
    // The library throws on characters that are not ASCII.
    if (!CODE.test(token)) return null;
    const totp = totpOf(secretOf(secret));
    const timestamp = clock.now();
    const delta = totp.validate({ token, timestamp, window: WINDOW });
    return delta === null ? null : totp.counter({ timestamp }) + delta;
  }

  async function countSetups(userId: string, db: Pick<pg.Pool, 'query'> = pool): Promise<number> {
    const { rows } = await db.query<{ setups: number }>(
      'select second_factor_setups as setups from work.user_profile where user_id = $1',
      [userId],
    );
    return rows[0]?.setups ?? 0;
  }

  const boundTo = (userId: string, about: string, setups: number, at: string): string =>
    `${sealedFor(userId)} ${about} ${setups} ${at}`;

  /** Opens a proposal that can still be confirmed; null: it is none. */
  async function openProposal(userId: string, about: string, proposal: string) {
    const [at = '', master_key_id = '', sealed = ''] = proposal.split('.');
    const age = clock.now() - Number(at);
    if (!(age > -MINUTE && age < PROPOSAL_MS)) return null;
    const setups = await countSetups(userId);
    const secret = opened(master, { master_key_id, sealed }, boundTo(userId, about, setups, at));
    return secret && { secret, setups };
  }

  const isSetUp = async (userId: string): Promise<boolean> => {
    const { rowCount } = await pool.query('select from work.second_factor where user_id = $1', [userId]);
    return rowCount === 1;
  };

  const digestOf = (userId: string, code: string): string => digest(`recovery code ${code} of ${userId}`);

  async function replaceCodes(client: pg.ClientBase, userId: string): Promise<readonly string[]> {
    const codes = Array.from({ length: RECOVERY_CODES }, newRecoveryCode);
    await client.query('delete from work.recovery_code where user_id = $1', [userId]);
    await client.query('insert into work.recovery_code (user_id, digest) select $1, unnest($2::text[])', [
      userId,
      codes.map((code) => digestOf(userId, normalised(code))),
    ]);
    return codes;
  }

  async function takeAppCode(client: pg.ClientBase, userId: string, code: string): Promise<boolean> {
    // The lock keeps two attempts at once from both taking the code.
    const { rows } = await client.query<{ secret: SealedText }>(
      'select secret from work.second_factor where user_id = $1 for update',
      [userId],
    );
    const [known] = rows;
    if (known === undefined) return false;
    const step = stepOf(openText(master, known.secret, sealedFor(userId)), code);
    if (step === null) return false;
    const { rowCount } = await client.query(
      `update work.second_factor set last_step = $2
       where user_id = $1 and (last_step < $2 or last_step > $2 + ${MAX_STEPS_AHEAD})`,
      [userId, step],
    );
    return rowCount === 1;
  }

  async function takeRecoveryCode(client: pg.ClientBase, userId: string, code: string): Promise<boolean> {
    const { rowCount } = await client.query(
      'delete from work.recovery_code where user_id = $1 and digest = $2',
      [userId, digestOf(userId, normalised(code))],
    );
    return rowCount === 1;
  }

  return {
    isSetUp,

    propose: async (userId, userName, about) => {
      const bytes = randomBytes(SECRET_BYTES);
      const at = String(clock.now());
      const setups = await countSetups(userId);
      const { master_key_id, sealed } = sealText(master, bytes, boundTo(userId, about, setups, at));
      return { ...shownTo(userName, bytes), proposal: `${at}.${master_key_id}.${sealed}` };
    },

    reopen: async (userId, userName, about, proposal) => {
      const found = await openProposal(userId, about, proposal);
      return found && { ...shownTo(userName, found.secret), proposal };
    },

    enable: async (userId, { proposal, about, code, token }) => {
      const proposed = await openProposal(userId, about, proposal);
      if (proposed === null) return (await isSetUp(userId)) ? 'set' : 'stale';
      const { secret, setups } = proposed;
      const step = stepOf(secret, code);
      if (step === null) return 'wrong';
      return withSynchronousCommit(pool, async (client) => {
        // One set-up at a time, and no login begins while the others end.
        await client.query('select from work.user_password where user_id = $1 for update', [userId]);
        if ((await countSetups(userId, client)) !== setups) return 'set';
        const { rowCount } = await client.query(
          `insert into work.second_factor (user_id, secret, last_step, set_at) values ($1, $2, $3, $4)
           on conflict do nothing`,
          [userId, JSON.stringify(sealText(master, secret, sealedFor(userId))), step, new Date(clock.now())],
        );
        if (rowCount !== 1) return 'set';
        // This login alone has given a code: one that has come in between stays one by the password alone.
        await client.query(
          `with others as (delete from work.login where user_id = $1 and digest <> sha256($2))
           update work.login set with_second_factor = true where user_id = $1 and digest = sha256($2)`,
          [userId, Buffer.from(token)],
        );
        await client.query(
          `insert into work.user_profile as p (user_id, second_factor_setups) values ($1, 1)
           on conflict (user_id) do update set second_factor_setups = p.second_factor_setups + 1`,
          [userId],
        );
        return replaceCodes(client, userId);
      });
    },

    // Durable, because a crash of the database must not bring a used code back.
    take: (userId, code) =>
      withSynchronousCommit(
        pool,
        async (client) => (await takeAppCode(client, userId, code)) || takeRecoveryCode(client, userId, code),
      ),

    renewRecoveryCodes: (userId) => withSynchronousCommit(pool, (client) => replaceCodes(client, userId)),

    countRecoveryCodes: async (userId) => {
      const { rows } = await pool.query<{ codes: number }>(
        'select count(*)::int as codes from work.recovery_code where user_id = $1',
        [userId],
      );
      return rows[0]?.codes ?? 0;
    },
  };
}

interface User {
  readonly partner_id: string;
  readonly user_id: string;
}

interface FactorChangeDeps extends Pick<ProcessorDeps, 'store' | 'pool'> {
  readonly factors: Pick<SecondFactors, 'enable' | 'renewRecoveryCodes'>;
}

/** Turns a user's second factor off, and forgets the recovery codes. */
export async function turnOffSecondFactor(
  { store, pool }: Pick<ProcessorDeps, 'store' | 'pool'>,
  user: User,
  context: CommandContext,
): Promise<Position | null> {
  await withSynchronousCommit(pool, async (client) => {
    await client.query('delete from work.recovery_code where user_id = $1', [user.user_id]);
    await client.query('delete from work.second_factor where user_id = $1', [user.user_id]);
  });
  const recorded = await recordSecondFactor(store, 'DisableSecondFactor', user, context);
  return recorded.ok ? recorded.value.position : null;
}

/** What users change of their own second factor, recorded as events. */
export const createFactorChanges = ({ factors, ...deps }: FactorChangeDeps) => ({
  /** As `SecondFactors.enable`. */
  enable: async (
    user: User,
    given: Parameters<SecondFactors['enable']>[1],
    context: CommandContext,
  ): ReturnType<SecondFactors['enable']> => {
    const codes = await factors.enable(user.user_id, given);
    if (typeof codes !== 'string') await recordSecondFactor(deps.store, 'EnableSecondFactor', user, context);
    return codes;
  },

  disable: (user: User, context: CommandContext) => turnOffSecondFactor(deps, user, context),

  renewRecoveryCodes: async (user: User, context: CommandContext): Promise<readonly string[]> => {
    const codes = await factors.renewRecoveryCodes(user.user_id);
    await recordSecondFactor(deps.store, 'RenewRecoveryCodes', user, context);
    return codes;
  },
});

/** Seals second factors that are sealed under another master key. @returns how many */
export async function resealSecondFactors(pool: pg.Pool, master: MasterKey): Promise<number> {
  const { rows } = await pool.query<{ user_id: string; secret: SealedText }>(
    `select user_id, secret from work.second_factor where secret->>'master_key_id' <> $1 order by user_id`,
    [master.currentId()],
  );
  for (const { user_id, secret } of rows) {
    const about = sealedFor(user_id);
    const resealed = sealText(master, openText(master, secret, about), about);
    // A user may have set up another one meanwhile.
    await pool.query(
      `update work.second_factor set secret = $2 where user_id = $1 and secret->>'sealed' = $3`,
      [user_id, JSON.stringify(resealed), secret.sealed],
    );
  }
  return rows.length;
}

function opened(master: MasterKey, sealed: SealedText, about: string): Buffer | null {
  try {
    return openText(master, sealed, about);
  } catch {
    return null;
  }
}

/** Makes a recovery code of 80 bits, in four groups. */
function newRecoveryCode(): string {
  const bits = BigInt(`0x${randomBytes(RECOVERY_BYTES).toString('hex')}`);
  const letters = Array.from({ length: 16 }, (_, n) => LETTERS[Number((bits >> BigInt(5 * n)) & 31n)]);
  return letters.join('').replaceAll(/(.{4})(?=.)/g, '$1-');
}

/** Accepts a recovery code as people type it: without hyphens, and with letters that look alike. */
const normalised = (code: string): string =>
  composed(code)
    .toLowerCase()
    .replaceAll(/[\s-]/g, '')
    .replaceAll('o', '0')
    .replaceAll(/[il]/g, '1')
    .slice(0, 100);
