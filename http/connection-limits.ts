import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionLimits {
  /** Open ones of this process. */
  readonly inAll: number;
  /** Of these, from one address, or from one network where the caller of this function groups them. */
  readonly perAddress: number;
  /** Returns the group of an address; null: not counted, such as a proxy that all callers share. */
  readonly groupOf: (address: string) => string | null;
}

/** Closes connections beyond the limits at once, before anything is read of them. */
export function limitConnections(server: Server, { inAll, perAddress, groupOf }: ConnectionLimits): void {
  server.maxConnections = inAll;
  const open = new Map<string, number>();
  server.prependListener('connection', (socket: Socket) => {
    const group = groupOf(socket.remoteAddress ?? '');
    if (group === null) return;
    const count = (open.get(group) ?? 0) + 1;
    if (count > perAddress) {
      socket.destroy();
      return;
    }
    open.set(group, count);
    socket.once('close', () => {
      const left = (open.get(group) ?? 1) - 1;
      if (left === 0) open.delete(group);
      else open.set(group, left);
    });
  });
}
