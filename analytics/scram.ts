import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

/** PostgreSQL's own defaults. */
const ITERATIONS = 4_096;
const SALT_BYTES = 16;

/**
 * Makes PostgreSQL's stored form of a password (RFC 5802, SCRAM-SHA-256). Passing it instead of the password keeps the
 * password out of statements and server logs. `password` in ASCII.
 */
export const scramVerifier = (password: string, salt = randomBytes(SALT_BYTES)): string => {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256');
  const keyed = (text: string): Buffer => createHmac('sha256', salted).update(text).digest();
  const stored = createHash('sha256').update(keyed('Client Key')).digest('base64');
  const server = keyed('Server Key').toString('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${stored}:${server}`;
};
