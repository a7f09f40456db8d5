import { type Argon2Parameters, argon2, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { composed } from '../domain/kernel/text.ts';
import { createGate } from './gate.ts';

const derive = promisify(argon2);

/** OWASP's minimum for argon2id: 19 MiB (here in KiB), two passes, one lane. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

/**
 * Half of the thread pool's four threads, so that files and DNS are not kept waiting; and half a second of waiting, as
 * one takes 30 ms. Over all networks: a caller with many addresses passes the rates of each.
 */
const gate = createGate({ room: 2, waiting: 32 });

/** A PHC string: what the hash was made with stands in it, so that the cost can rise one day. */
const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

const derived = (password: string, parameters: Omit<Argon2Parameters, 'message'>): Promise<Buffer> =>
  // The same password however the keyboard composes its letters.
  derive('argon2id', { ...parameters, message: composed(password) });

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');

const hashOf = async (password: string): Promise<string> => {
  const nonce = randomBytes(SALT_BYTES);
  const key = await derived(password, { ...COST, nonce, tagLength: KEY_BYTES });
  const { memory, passes, parallelism } = COST;
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(nonce)}$${unpadded(key)}`;
};

/**
 * argon2id (RFC 9106) as a PHC string.
 * @throws WorkRefused while too many passwords are hashed or checked
 */
export const hashPassword = (password: string): Promise<string> => gate.enter(() => hashOf(password));

/** Of a password that nobody knows. */
let dummyHash: Promise<string> | null = null;

/**
 * Whether it is the password of this hash. null: there is none, which takes as long to say.
 * @throws WorkRefused while too many passwords are hashed or checked
 */
export const isPassword = (password: string, hash: string | null): Promise<boolean> =>
  gate.enter(() => matches(password, hash));

const matches = async (password: string, hash: string | null): Promise<boolean> => {
  dummyHash ??= hashOf(randomBytes(32).toString('hex'));
  const [, memory, passes, parallelism, salt, key] = PHC.exec(hash ?? (await dummyHash)) ?? [];
  if (salt === undefined || key === undefined)
    throw new Error('a password is kept in a form that is not known');
  const wanted = Buffer.from(key, 'base64');
  const given = await derived(password, {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    nonce: Buffer.from(salt, 'base64'),
    tagLength: wanted.length,
  });
  return timingSafeEqual(given, wanted) && hash !== null;
};

/** Nothing that is mistaken for another letter when it is read out. */
const LETTERS = 'abcdefghjkmnpqrstuvwxyz23456789';

/** A first password that is easily typed: four groups of five, 99 bits. */
export const newPassword = (): string => {
  const group = () => Array.from({ length: 5 }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  return [group(), group(), group(), group()].join('-');
};
