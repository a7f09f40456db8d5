import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf, EmbeddedPostgresError } from './error.ts';

/**
 * Runs the action while no other process of this machine does so for the same folder. The lock is a socket in Linux's
 * abstract namespace: the kernel releases it when its process dies, so it is never stale.
 * @throws EmbeddedPostgresError if other processes held it for all of `patience` (milliseconds)
 */
export async function exclusively<T>(folder: string, patience: number, action: () => Promise<T>): Promise<T> {
  const name = `\0doorplate-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`;
  const deadline = performance.now() + patience;
  let lock = await tryListen(name);
  while (lock === null) {
    if (performance.now() > deadline) {
      throw new EmbeddedPostgresError(`another process is busy starting or stopping PostgreSQL in ${folder}`);
    }
    await pause(25);
    lock = await tryListen(name);
  }
  try {
    return await action();
  } finally {
    lock.close();
  }
}

function tryListen(name: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error) => (codeOf(error) === 'EADDRINUSE' ? resolve(null) : reject(error)));
    server.listen({ path: name }, () => resolve(server));
  });
}
