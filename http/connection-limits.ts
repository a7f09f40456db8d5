import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { type CallerLimits, type CallerNetworks, createHeldByCallers } from './held-by-callers.ts';

export interface ConnectionLimits extends CallerLimits {
  /** Open ones of this process. */
  readonly inAll: number;
  /** Returns the caller at an address; null: not counted, such as a proxy that all callers share. */
  readonly callerAt: (address: string) => CallerNetworks | null;
}

/** Closes connections beyond the limits at once, before anything is read of them. */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  server.maxConnections = limits.inAll;
  const open = createHeldByCallers(limits);
  server.prependListener('connection', (socket: Socket) => {
    const caller = limits.callerAt(socket.remoteAddress ?? '');
    if (caller === null) return;
    if (open.take(caller)) socket.once('close', () => open.giveBack(caller));
    else socket.destroy();
  });
}
