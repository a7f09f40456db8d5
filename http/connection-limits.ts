import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { type CallerLimits, type CallerNetworks, createHeldByCallers } from './held-by-callers.ts';

export interface ConnectionLimits extends CallerLimits {
  /** Open ones of this process. */
  readonly inAll: number;
  /** Returns the caller at an address; null: not counted, such as a proxy that all callers share. */
  readonly callerAt: (address: string) => CallerNetworks | null;
}

/**
 * Closes connections beyond the limits at once, before anything is read of them. `makeRoom`: called when there are as many as there may
 * be. Counted here, because the server itself counts those of one of its listeners alone.
 */
export function limitConnections(server: Server, limits: ConnectionLimits, makeRoom: () => void): void {
  let inAll = 0;
  const open = createHeldByCallers(limits);
  const take = (socket: Socket): boolean => {
    const caller = limits.callerAt(socket.remoteAddress ?? '');
    if (caller === null) return true;
    if (!open.take(caller)) return false;
    socket.once('close', () => open.giveBack(caller));
    return true;
  };
  server.prependListener('connection', (socket: Socket) => {
    if (inAll >= limits.inAll) makeRoom();
    else if (take(socket)) {
      inAll += 1;
      socket.once('close', () => {
        inAll -= 1;
      });
      return;
    }
    socket.destroy();
  });
}
