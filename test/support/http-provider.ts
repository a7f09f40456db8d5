import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Environment } from './doorplate.ts';

/** A provider of company data over HTTP, for services in separate processes. */
export interface TestProvider {
  /** The service's configuration for this provider. */
  readonly env: Environment;
  close(): void;
}

export const COMPANY = { match_type: 'company', company: { name: 'Provided' } };

/** `answer` decides for each address; a request without an answer hangs. */
export const startProvider = async (
  answer: (ip: string, response: ServerResponse) => void,
): Promise<TestProvider> => {
  const server = createServer((request, response) => answer(request.url?.slice(1) ?? '', response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    env: { ENRICHMENT_PROVIDERS: 'http', ENRICHMENT_HTTP_URL: `http://127.0.0.1:${port}/{ip}` },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
};

export const respond = (response: ServerResponse, status: number, body: object = {}): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
