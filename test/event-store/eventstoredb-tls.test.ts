import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import type { SecureServerOptions } from 'node:http2';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createEventStoreDb } from '../../event-store/eventstoredb/store.ts';
import { eventStoreProblem } from '../../platform/postgres/unavailable.ts';
import { type Authority, type Certificate, makeAuthority } from '../support/certificates.ts';
import { eventAnswer, startFakeNode } from '../support/fake-node.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

let authority: Authority;
let folder: string;
const fileOf = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = makeTemporaryFolder('eventstoredb-tls-');
  authority = await makeAuthority();
  writeFileSync(fileOf('ca.pem'), authority.cert);
  const { key, cert } = await authority.issue(['the client']);
  writeFileSync(fileOf('client.key'), key);
  writeFileSync(fileOf('client.pem'), cert);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the head by a node with the certificate, or the one line of why there is none. */
const headBy = async (certificate: Certificate, options: string, tls: SecureServerOptions = {}) => {
  const node = await startFakeNode(
    ({ reply, end }) => {
      reply(eventAnswer({ id: randomUUID(), stream: 's-1', revision: 0, position: 7, data: {} }));
      end();
    },
    { ...certificate, ...tls },
  );
  const url = `esdb://user:the-password@127.0.0.1:${node.port}${options}`;
  const store = createEventStoreDb({ url, now: () => 0, deadlineMs: 1_000 });
  onTestFinished(async () => {
    await store.close();
    await node.close();
  });
  const problem = await eventStoreProblem({ EVENTSTORE_URL: url }, store);
  return problem === null ? await store.head() : problem.message;
};

it('trusts the authority that the connection string names', async () => {
  const certificate = await authority.issue(['127.0.0.1']);
  expect(await headBy(certificate, `?tlsCAFile=${fileOf('ca.pem')}`)).toBe(7n);
  expect(await headBy(certificate, '?tlsVerifyCert=false')).toBe(7n);
});

it.each([
  ['of an unknown authority', ['127.0.0.1'], '', undefined, /tlsCAFile=FILE/],
  ['with another name', ['other.example'], 'ca', undefined, /altnames/],
  [
    'that has expired',
    ['127.0.0.1'],
    'ca',
    { from: new Date('2020-01-01'), to: new Date('2020-02-01') },
    /expired/,
  ],
])('refuses a certificate %s in one line', async (_, hosts, trusted, validity, reason) => {
  const certificate = await authority.issue(hosts, validity);
  const problem = await headBy(certificate, trusted === '' ? '' : `?tlsCAFile=${fileOf('ca.pem')}`);
  expect(problem).toMatch(reason);
  expect(problem).not.toContain('\n');
  expect(problem).not.toContain('the-password');
  if (trusted !== '') expect(problem).not.toContain('tlsCAFile');
});

it('shows the certificate of a client to a server that demands one', async () => {
  const certificate = await authority.issue(['127.0.0.1']);
  const demanding = { ca: authority.cert, requestCert: true, rejectUnauthorized: true };
  const own = `&userCertFile=${fileOf('client.pem')}&userKeyFile=${fileOf('client.key')}`;
  expect(await headBy(certificate, `?tlsCAFile=${fileOf('ca.pem')}${own}`, demanding)).toBe(7n);
  expect(await headBy(certificate, `?tlsCAFile=${fileOf('ca.pem')}`, demanding)).toMatch(/EVENTSTORE_URL/);
});
