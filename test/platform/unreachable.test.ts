import { once } from 'node:events';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { freePort } from '../../cli/installation/free-port.ts';
import { addressOf } from '../../platform/postgres/unavailable.ts';
import { makeAuthority } from '../support/certificates.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { doorplate, doorplateHere, MASTER_KEY, startDoorplate } from '../support/doorplate.ts';
import { eventually } from '../support/eventually.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';

let database: TestDatabase;
let dataDir: string;
let closedPort: number;
beforeAll(async () => {
  database = await testDatabase();
  dataDir = await makeTestFolder();
  closedPort = await freePort();
});
afterAll(async () => {
  await database.drop();
  await removeDataFolder(dataDir);
});

const environment = (over: Record<string, string>) => ({
  DATA_DIR: dataDir,
  DATABASE_URL: database.url,
  MASTER_KEY,
  ...over,
});
const listPartners = (over: Record<string, string>) => doorplateHere(['partner', 'list'], environment(over));
/** As a process, which shows that no open connection keeps it from exiting. */
const listInProcess = (over: Record<string, string>) => doorplate(['partner', 'list'], environment(over));
const listening = async (server: Server): Promise<number> => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
};

describe('a command whose event store cannot be used names variable, address and cause, and exits with 1', () => {
  it('when nothing listens there', async () => {
    const { code, stderr } = await listInProcess({
      EVENTSTORE_URL: `esdb://admin:s3cret@127.0.0.1:${closedPort}?tls=false&maxDiscoverAttempts=1`,
    });
    expect(stderr).toMatch(
      new RegExp(
        `^doorplate: EVENTSTORE_URL: esdb://127\\.0\\.0\\.1:${closedPort} cannot be used: .*ECONNREFUSED`,
        'm',
      ),
    );
    expect(stderr).not.toContain('s3cret');
    expect(code).toBe(1);
  });

  it('when its certificate is from an unknown authority, with the variable to set', async () => {
    const authority = await makeAuthority();
    const { key, cert } = await authority.issue(['127.0.0.1']);
    const server = createTlsServer({ key, cert, ALPNProtocols: ['h2'] }).on(
      'tlsClientError',
      () => undefined,
    );
    const port = await listening(server);
    const { code, stderr } = await listPartners({ EVENTSTORE_URL: `esdb://127.0.0.1:${port}?tls=true` });
    server.close();
    expect(stderr).toMatch(
      /EVENTSTORE_URL: esdb:\/\/127\.0\.0\.1:\d+ cannot be used: .*certificate.*tlsCAFile/,
    );
    expect(code).toBe(1);
  });
});

describe('a command whose database cannot be used names variable, address and cause, and exits with 1', () => {
  it('when nothing listens there', async () => {
    const { code, stderr } = await listPartners({
      DATABASE_URL: `postgres://doorplate:s3cret@127.0.0.1:${closedPort}/doorplate`,
    });
    expect(stderr).toBe(
      `doorplate: DATABASE_URL: postgres://127.0.0.1:${closedPort}/doorplate cannot be used: connect ECONNREFUSED 127.0.0.1:${closedPort}\n`,
    );
    expect(code).toBe(1);
  });

  it('when the server there never answers', async () => {
    const silent = createTcpServer();
    const port = await listening(silent);
    const { code, stderr } = await listInProcess({
      DATABASE_URL: `postgres://doorplate@127.0.0.1:${port}/doorplate`,
    });
    silent.close();
    expect(stderr).toContain(
      `DATABASE_URL: postgres://127.0.0.1:${port}/doorplate cannot be used: timeout expired`,
    );
    expect(code).toBe(1);
  });

  it('when a variable of PostgreSQL asks for what the server has not', async () => {
    const { code, stderr } = await listPartners({ PGSSLMODE: 'require' });
    expect(stderr).toMatch(
      /^doorplate: DATABASE_URL with PGSSLMODE: .* cannot be used: The server does not support SSL connections\n$/m,
    );
    expect(code).toBe(1);
  });

  it('when it has no such database', async () => {
    const url = new URL(database.url);
    url.pathname = '/nowhere';
    const { code, stderr } = await listPartners({ DATABASE_URL: url.href });
    expect(stderr).toMatch(
      /^doorplate: DATABASE_URL: .* cannot be used: database "nowhere" does not exist\n$/,
    );
    expect(code).toBe(1);
  });
});

it('a command takes the URL of a socket as psql does, with the password of the environment', async () => {
  const { username, password, hostname, port, pathname } = new URL(database.url);
  const { code, stderr } = await listPartners({
    DATABASE_URL: `postgresql://${username}@${pathname}?host=${decodeURIComponent(hostname)}&port=${port}`,
    PGPASSWORD: decodeURIComponent(password),
  });
  expect([stderr, code]).toEqual(['', 0]);
});

it('a server whose event store cannot be reached reports it before it listens', async () => {
  const url = `esdb://admin:s3cret@127.0.0.1:${closedPort}?tls=false&maxDiscoverAttempts=1`;
  const ports = { PORT: String(await freePort()), OPS_PORT: String(await freePort()) };
  const server = startDoorplate(
    ['serve', '--role', 'api'],
    environment({ EVENTSTORE_URL: url, PGSSLMODE: 'disable', ...ports }),
  );
  await eventually('it listens', () => server.stderr().includes('listening'), Boolean, 30_000);
  const log = server.stderr();
  expect(log).toMatch(/EVENTSTORE_URL: esdb:\/\/127\.0\.0\.1:\d+ cannot be used: .*ECONNREFUSED/);
  expect(log).not.toContain('s3cret');
  expect(log).toContain('DATABASE_URL is completed from the environment: PGSSLMODE');
  expect(log).toContain('listening, though the event store did not answer at the start');
  server.child.kill('SIGTERM');
  expect(await server.ended).toBe(0);
});

it.each([
  ['esdb://admin:p%40ss@a:2113,b:2113,c:2113?tls=false', 'esdb://a:2113,b:2113,c:2113'],
  ['postgres://me:secret@%2Frun%2Fpg:1/doorplate?options=secret', 'postgres://%2Frun%2Fpg:1/doorplate'],
  ['postgresql://h/doorplate', 'postgresql://h/doorplate'],
])('the address of %s is printed without credentials', (url, address) => {
  expect(addressOf(url)).toBe(address);
});
