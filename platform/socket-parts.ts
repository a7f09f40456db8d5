import type { Socket } from 'node:net';

export interface Parts {
  /** Length of the longest part. */
  readonly bytes: number;
  /** Called before each part; false: the reader gets no more. */
  readonly mayRead?: () => boolean;
  readonly onPart?: (part: Buffer) => void;
}

/**
 * Gives the reader of a socket what was received in parts. undici reads all of it at once, 64 KiB, and cannot be stopped before it
 * has parsed them: beyond its limit of header fields it makes an error with a stack for each further one, which takes 10
 * microseconds.
 */
export const readInParts = (
  socket: Socket,
  { bytes, mayRead = () => true, onPart = () => undefined }: Parts,
): void => {
  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    // Node's own calls have a size: `read(0)` fetches more data.
    if (size !== undefined) return read(size);
    // undici parses also what is left of a socket that it has destroyed.
    if (socket.destroyed || !mayRead()) return null;
    const part: Buffer | null = read(socket.readableLength > bytes ? bytes : undefined);
    if (part !== null) onPart(part);
    return part;
  };
};
