import { connect } from 'node:net';

/** One kept-alive connection with at most one request on it. */
export interface Connection {
  send(request: string | Buffer): void;
  destroy(): void;
}

const HEAD_END = '\r\n\r\n';
const NO_CONTENT = 204;
const NOTHING = ['', '0'];

/**
 * Speaks the minimum of HTTP/1.1 that a load needs: an answer is a status line, a Content-Length and its bytes. It
 * costs about half the CPU of a full parser, and the server lacks the CPU that the load generator uses.
 */
export const openConnection = (
  port: number,
  onOpen: (connection: Connection) => void,
  onAnswer: (connection: Connection, status: number) => void,
): void => {
  const socket = connect(port, '127.0.0.1');
  let head: Buffer | null = null;
  let missing = 0;
  let status = 0;
  let finished = false;

  const connection: Connection = {
    send: (request) => void socket.write(request),
    destroy: () => {
      finished = true;
      socket.destroy();
    },
  };

  const receive = (chunk: Buffer): void => {
    if (missing > 0) {
      missing -= chunk.length;
    } else {
      const bytes: Buffer = head === null ? chunk : Buffer.concat([head, chunk]);
      const end = bytes.indexOf(HEAD_END);
      head = end < 0 ? bytes : null;
      if (end < 0) return;
      const text = bytes.toString('latin1', 0, end);
      status = Number(text.slice(9, 12));
      const length = status === NO_CONTENT ? NOTHING : /\r\ncontent-length: *(\d+)/i.exec(text);
      if (length === null) throw new Error(`an answer without Content-Length: ${text}`);
      missing = end + HEAD_END.length + Number(length[1]) - bytes.length;
    }
    if (missing < 0) throw new Error('more bytes than the answer has');
    if (missing === 0) onAnswer(connection, status);
  };

  socket.setNoDelay(true);
  socket.on('connect', () => onOpen(connection));
  socket.on('data', receive);
  socket.on('close', () => {
    if (!finished) throw new Error('the server closed a connection');
  });
};
