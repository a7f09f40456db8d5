import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

/** As PostgreSQL makes them itself. */
const ITERATIONS = 4_096;
const SALT_BYTES = 16;

/**
 * What PostgreSQL keeps of a password (RFC 5802, SCRAM-SHA-256): given to it in the password's place, no statement and
 * so no log of the server ever holds the password. `password` in ASCII.
 */
export const scramVerifier = (password: string, salt = randomBytes(SALT_BYTES)): string => {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256');
  const keyed = (text: string): Buffer => createHmac('sha256', salted).update(text).digest();
  const stored = createHash('sha256').update(keyed('Client Key')).digest('base64');
  const server = keyed('Server Key').toString('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${stored}:${server}`;
};
