/**
 * A node behind a proxy that demands a client's certificate, as the open-source server checks none. Runs where `EVENTSTORE_URL` names one
 * node without TLS, and HAProxy is installed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../cli/installation/free-port.ts';
import { createEventStoreDb } from '../../event-store/eventstoredb/store.ts';
import { type EventStore, StoreUnavailable } from '../../event-store/port.ts';
import { hostsOf } from '../storm/stack.ts';
import { makeAuthority } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { reapProcess } from '../support/reaped.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { all, event, unique } from './suite/context.ts';

const HAPROXY = process.env.HAPROXY ?? '/usr/sbin/haproxy';
const { EVENTSTORE_URL: url = '' } = process.env;
const [node, ...others] = hostsOf(url);

describe.skipIf(!existsSync(HAPROXY) || url === '' || others.length > 0)(
  'a node of EventStoreDB behind HAProxy, which demands a certificate of the client',
  () => {
    let folder: string;
    let port: number;
    let stop: () => Promise<void>;
    const file = (name: string): string => join(folder, name);

    beforeAll(async () => {
      folder = makeTemporaryFolder('eventstoredb-proxy-');
      port = await freePort();
      const [authority, stranger] = [await makeAuthority(), await makeAuthority()];
      const [own, client, foreign] = [
        await authority.issue(['127.0.0.1']),
        await authority.issue(['the client']),
        await stranger.issue(['the client']),
      ];
      const files = {
        'ca.pem': authority.cert,
        'proxy.pem': `${own.cert}\n${own.key}`,
        'client.pem': client.cert,
        'client.key': client.key,
        'foreign.pem': foreign.cert,
        'foreign.key': foreign.key,
        'haproxy.cfg': `
defaults
  mode http
  timeout connect 5s
  timeout client 1m
  timeout server 1m
frontend clients
  bind 127.0.0.1:${port} ssl crt ${file('proxy.pem')} ca-file ${file('ca.pem')} verify required alpn h2
  # A node without TLS refuses requests whose scheme is https.
  http-request set-uri http://%[req.hdr(host)]%[pathq]
  default_backend node
backend node
  server node ${node?.host}:${node?.port} proto h2
`,
      };
      for (const [name, text] of Object.entries(files)) writeFileSync(file(name), text);
      const child = spawn(HAPROXY, ['-db', '-f', file('haproxy.cfg')], { stdio: 'ignore' });
      if (child.pid !== undefined) reapProcess(child.pid);
      stop = async () => {
        if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'close');
        rmSync(folder, { recursive: true, force: true });
      };
    });

    afterAll(() => stop());

    const open = (certificate: string | null): EventStore => {
      const own = certificate
        ? `&userCertFile=${file(`${certificate}.pem`)}&userKeyFile=${file(`${certificate}.key`)}`
        : '';
      const store = createEventStoreDb({
        url: `esdb://127.0.0.1:${port}?tlsCAFile=${file('ca.pem')}${own}`,
        now: Date.now,
      });
      onTestFinished(() => store.close());
      return store;
    };

    it('appends, reads, follows and deletes by the certificate that the connection string names', async () => {
      const store = open('client');
      await eventually('the proxy is up', () =>
        store.head().then(
          () => true,
          () => false,
        ),
      );
      const after = await store.head();
      const stream = unique();
      await store.append(stream, 'no_stream', [event(), event()]);
      expect(await all(store.readStream(stream))).toHaveLength(2);
      const ending = new AbortController();
      for await (const { events } of store.follow({ after, prefixes: [stream], signal: ending.signal }))
        if (events.length > 0) ending.abort();
      await store.expire(stream, 1);
      expect(await all(store.readStream(stream))).toEqual([]);
    });

    it.each([null, 'foreign'])(
      'refuses a client whose certificate is %s, in one line',
      async (certificate) => {
        const store = open(certificate);
        const refused = await store.head().catch((error: unknown) => error);
        expect(refused).toBeInstanceOf(StoreUnavailable);
        expect(String(refused)).not.toContain('\n');
      },
    );
  },
);
