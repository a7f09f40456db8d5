import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Answer = (response: ServerResponse) => void;

/** An HTTP server on loopback whose answer a test sets. */
export interface AnsweringServer {
  /** Its origin. */
  readonly base: string;
  /** The requests so far. */
  readonly asked: readonly {
    readonly path: string | undefined;
    readonly authorization: string | undefined;
  }[];
  answers(answer: Answer): void;
  close(): void;
}

export const json =
  (status: number, value: unknown): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

export const startAnsweringServer = async (): Promise<AnsweringServer> => {
  const asked: { path: string | undefined; authorization: string | undefined }[] = [];
  let answer: Answer = json(200, {});
  const server = createServer((request, response) => {
    asked.push({ path: request.url, authorization: request.headers.authorization });
    answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    answers: (given) => {
      answer = given;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};
