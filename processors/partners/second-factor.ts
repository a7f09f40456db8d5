import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type pg from 'pg';
import type { CommandContext } from '../../commands/handle.ts';
import { recordSecondFactor } from '../../commands/partners/manage-team.ts';
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
/** As long as the digest of HMAC-SHA-1, which is what all apps can do. */
const SECRET_BYTES = 20;
const RECOVERY_CODES = 10;
/** Crockford's base 32, five bits a character. */
const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz';
const RECOVERY_BYTES = 10;

export interface SecondFactors {
  isSetUp(userId: string): Promise<boolean>;
  /** Makes a secret that counts once a first code has proven it. `about`: binds it to one login. */
  propose(userId: string, userName: string, about: string): ProposedSecret;
  /** Opens a proposal of this login again; null: it is none. */
  reopen(userId: string, userName: string, about: string, proposal: string): ProposedSecret | null;
  /**
   * Sets the second factor up, and ends the user's other logins.
   * @returns the recovery codes; `stale`: the proposal is of another login or key; `set`: there is a second factor already
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
  const totp = totpOf(secretOf(secret), userName);
  return { secret: totp.secret.base32, uri: totp.toString() };
}

const sealedFor = (userId: string): string => `second factor of ${userId}`;

export function createSecondFactors({ pool, clock, master, digest }: SecondFactorDeps): SecondFactors {
  /** Returns the step of a code; null: it is wrong. */
  function stepOf(secret: Buffer, code: string): number | null {
    const totp = totpOf(secretOf(secret));
    const timestamp = clock.now();
    const delta = totp.validate({ token: code.replaceAll(/\s/g, ''), timestamp, window: WINDOW });
    return delta === null ? null : totp.counter({ timestamp }) + delta;
  }

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
    isSetUp: async (userId) => {
      const { rowCount } = await pool.query('select from work.second_factor where user_id = $1', [userId]);
      return rowCount === 1;
    },

    propose: (userId, userName, about) => {
      const bytes = randomBytes(SECRET_BYTES);
      const { master_key_id, sealed } = sealText(master, bytes, `${sealedFor(userId)} ${about}`);
      return { ...shownTo(userName, bytes), proposal: `${master_key_id}.${sealed}` };
    },

    reopen: (userId, userName, about, proposal) => {
      const secret = opened(master, proposal, `${sealedFor(userId)} ${about}`);
      return secret && { ...shownTo(userName, secret), proposal };
    },

    enable: async (userId, { proposal, about, code, token }) => {
      const secret = opened(master, proposal, `${sealedFor(userId)} ${about}`);
      if (secret === null) return 'stale';
      const step = stepOf(secret, code);
      if (step === null) return 'wrong';
      return withSynchronousCommit(pool, async (client) => {
        const { rowCount } = await client.query(
          `insert into work.second_factor (user_id, secret, last_step, set_at) values ($1, $2, $3, $4)
           on conflict do nothing`,
          [userId, JSON.stringify(sealText(master, secret, sealedFor(userId))), step, new Date(clock.now())],
        );
        if (rowCount !== 1) return 'set';
        await client.query('delete from work.login where user_id = $1 and digest <> sha256($2)', [
          userId,
          Buffer.from(token),
        ]);
        await client.query('update work.login set with_second_factor = true where user_id = $1', [userId]);
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

/** Turns a user's second factor off, and forgets the recovery codes. */
export async function turnOffSecondFactor(
  { store, pool }: Pick<ProcessorDeps, 'store' | 'pool'>,
  user: { readonly partner_id: string; readonly user_id: string },
  context: CommandContext,
): Promise<Position | null> {
  await withSynchronousCommit(pool, async (client) => {
    await client.query('delete from work.recovery_code where user_id = $1', [user.user_id]);
    await client.query('delete from work.second_factor where user_id = $1', [user.user_id]);
  });
  const recorded = await recordSecondFactor(store, 'DisableSecondFactor', user, context);
  return recorded.ok ? recorded.value.position : null;
}

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

function opened(master: MasterKey, proposal: string, about: string): Buffer | null {
  const [master_key_id = '', sealed = ''] = proposal.split('.');
  try {
    return openText(master, { master_key_id, sealed }, about);
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

/** As people may type it: without hyphens, and with letters that look alike. */
const normalised = (code: string): string =>
  code.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1').slice(0, 100);
