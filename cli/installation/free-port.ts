import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that systems give to outgoing connections, which could take one before it is listened on. */
const FIRST = 10_000;
const END = 32_768;

/** Finds a port on 127.0.0.1 that was free a moment ago. */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(FIRST, END);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
};
