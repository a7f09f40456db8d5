import { type Argon2Parameters, argon2, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { composed } from '../../domain/kernel/text.ts';
import { createSemaphore } from '../limits/semaphore.ts';

const derive = promisify(argon2);

/** OWASP's minimum for argon2id: 19 MiB (here in KiB), two passes, one lane. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

/** One hash at a time, about 30 ms each: a flood of logins takes one core and one of the four threads of Node's pool. */
const hashing = createSemaphore({ limit: 1, maxWaiting: 64, maxWaitMs: 4_000 });

/** A PHC string records the cost parameters, so that the cost can be raised later. */
const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

const derived = (password: string, parameters: Omit<Argon2Parameters, 'message'>): Promise<Buffer> =>
  // Normalized, because keyboards compose letters differently.
  derive('argon2id', { ...parameters, message: composed(password) });

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');

async function hashOf(password: string): Promise<string> {
  const nonce = randomBytes(SALT_BYTES);
  const key = await derived(password, { ...COST, nonce, tagLength: KEY_BYTES });
  const { memory, passes, parallelism } = COST;
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(nonce)}$${unpadded(key)}`;
}

/** Hashes a password with argon2id (RFC 9106) to a PHC string. @throws WorkRefused under too much concurrent work */
export const hashPassword = (password: string): Promise<string> => hashing.enter(() => hashOf(password));

/** Hash of a random password. */
let dummyHash: Promise<string> | null = null;
function dummy(): Promise<string> {
  dummyHash ??= hashOf(randomBytes(32).toString('hex')).catch((error: unknown) => {
    dummyHash = null;
    throw error;
  });
  return dummyHash;
}

/**
 * Checks a password against a hash. With `hash` null it takes equally long and returns false.
 * @throws WorkRefused under too much concurrent work
 */
export const isPassword = (password: string, hash: string | null): Promise<boolean> =>
  hashing.enter(() => matches(password, hash));

async function matches(password: string, hash: string | null): Promise<boolean> {
  // For the first of all attempts too, whose time would show whether there is such a user.
  await dummy();
  const [, memory, passes, parallelism, salt, key] = PHC.exec(hash ?? (await dummy())) ?? [];
  if (salt === undefined || key === undefined) throw new Error('stored password has an unknown hash format');
  const wanted = Buffer.from(key, 'base64');
  const given = await derived(password, {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    nonce: Buffer.from(salt, 'base64'),
    tagLength: wanted.length,
  });
  return timingSafeEqual(given, wanted) && hash !== null;
}

/** Without characters that are easily confused when read out. */
const LETTERS = 'abcdefghjkmnpqrstuvwxyz23456789';

/** Generates a first password that is easy to type: four groups of five characters, 99 bits. */
export function newPassword(): string {
  const group = () => Array.from({ length: 5 }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  return [group(), group(), group(), group()].join('-');
}
