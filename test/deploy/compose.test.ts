import { spawnSync } from 'node:child_process';
import { chmodSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ignoreModule from '@balena/dockerignore';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const fileOf = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly ports?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly user?: string;
  readonly healthcheck?: object;
}
const compose = parse(fileOf('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<
    Record<string, { enable_ipv6: boolean; ipam: { config: readonly { subnet: string }[] } }>
  >;
};
const services = Object.entries(compose.services);
const header = fileOf('docker-compose.yml').split('\nx-', 1)[0] ?? '';

describe('docker-compose.yml', () => {
  it('publishes no operations listener', () => {
    for (const [name, { ports = [] }] of services) {
      expect(
        ports.filter((port) => port.endsWith(':3001')),
        name,
      ).toEqual([]);
    }
    expect(fileOf('Dockerfile')).toMatch(/^EXPOSE 3000$/m);
  });

  it('publishes only the edge to other machines', () => {
    const open = services.filter(([, { ports = [] }]) =>
      ports.some((port) => !port.startsWith('127.0.0.1:')),
    );
    expect(open.map(([name]) => name)).toEqual(['edge']);
  });

  it('requires every password and key instead of a default', () => {
    const secrets = fileOf('docker-compose.yml').match(/\$\{[A-Z_]*(PASSWORD|MASTER_KEY)\b[^}]*\}/g) ?? [];
    expect(secrets.length).toBeGreaterThan(3);
    for (const secret of secrets) expect(secret).toMatch(/^\$\{[A-Z_]+:\?/);
  });

  it('names exact versions of images', () => {
    for (const [name, { image, build }] of services) {
      if (build === undefined)
        expect(image, name).toMatch(/:v?\d+\.\d+(\.\d+)?(-[a-z]+)?$|@sha256:[0-9a-f]{64}$/);
    }
    const caddies = services.filter(([, { image }]) => image?.startsWith('caddy'));
    for (const [, { image }] of caddies) expect(image).toMatch(/:\d+\.\d+\.\d+$/);
    for (const from of fileOf('Dockerfile').match(/^FROM .*/gm) ?? []) {
      expect(from).toMatch(/^FROM node:\d+\.\d+\.\d+-[a-z]+-slim/);
    }
  });

  it('configures the host names under which the operations listener is called', () => {
    for (const name of ['api', 'workers', 'api-cluster', 'workers-cluster']) {
      expect(compose.services[name]?.environment?.OPS_HOSTS?.split(',')).toContain(name);
    }
    expect(compose.services.caddy?.environment?.EDGE_OPERATIONS).toBe('api:3001');
  });

  it('gives the edge alone a network with IPv6, under a private subnet that .env can change', () => {
    expect(services.filter(([, { networks }]) => networks?.includes('front')).map(([name]) => name)).toEqual([
      'edge',
    ]);
    expect(compose.networks.front).toMatchObject({
      enable_ipv6: true,
      ipam: { config: [{ subnet: expect.stringMatching(/^\$\{FRONT_SUBNET:-fd[0-9a-f:]+::\/64\}$/) }] },
    });
  });

  it('starts the edge as root, which reads keys of mode 0600, and lets haproxy.cfg drop to another user', () => {
    expect(compose.services.edge?.user).toBe('root');
    expect(fileOf('deploy/edge/haproxy.cfg')).toMatch(/^ +user "\$\{EDGE_USER-haproxy\}"$/m);
  });

  it('checks the health of every service, so that up --wait fails while one restarts again and again', () => {
    const dockerfile = fileOf('Dockerfile');
    for (const [name, { build, healthcheck }] of services) {
      expect(healthcheck ?? (build === '.' && dockerfile.includes('\nHEALTHCHECK ')), name).toBeTruthy();
    }
  });

  it('mounts files into containers only where their user can read those of a checkout made under umask 077', () => {
    const mounted = services.filter(([, { volumes = [] }]) => volumes.some((one) => one.startsWith('./')));
    // Caddy's image runs as root.
    const others = mounted.filter(([, { image }]) => !image?.startsWith('caddy:'));
    expect(others.map(([name]) => name)).toEqual(['edge', 'prometheus', 'grafana']);
    for (const [name, { user }] of others) expect(user, name).toBe('root');
  });

  it('keeps everything that containers write in named volumes', () => {
    const events = services.filter(([, { image }]) => image?.startsWith('eventstore/'));
    expect(events).toHaveLength(4);
    for (const [name, { volumes }] of events) {
      expect(volumes).toEqual([`${name}:/var/lib/eventstore`, `${name}-logs:/var/log/eventstore`]);
    }
  });

  it('takes a public URL for each profile, and the issuer of certificates, from .env', () => {
    expect(compose.services.api?.environment?.PUBLIC_URL).toContain('${PUBLIC_URL:-');
    expect(compose.services['api-cluster']?.environment?.PUBLIC_URL).toContain('${CLUSTER_PUBLIC_URL:-');
    expect(compose.services.caddy?.environment?.EDGE_ISSUER).toMatch(/^\$\{EDGE_ISSUER:-acme\}$/);
    for (const variable of ['CLUSTER_PUBLIC_URL', 'EDGE_ISSUER', 'FRONT_SUBNET']) {
      expect(header).toContain(variable);
    }
  });

  it('begins with lines that lead to a first lookup and to an upgrade, and that leave the umask as it was', () => {
    expect(header).toMatch(/run --rm api partner create Acme/);
    expect(header).toMatch(/run --rm api key create --partner Acme --name/);
    expect(header).toMatch(/git pull && docker compose up --build --detach --wait/);
    expect(header).toMatch(/^# +\(umask 077 /m);
  });
});

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PLANTED = [
  '.env',
  '.env.grafana',
  '.doorplate/master.key',
  'backup/doorplate.dump',
  'deploy/edge/certificates/own.pem',
  'web/own.pem',
  'clients/python/.env',
];
/** Files of a checkout, with those that an operator may have laid there, relative to its root. */
const checkout = [
  ...PLANTED,
  ...globSync('**', {
    cwd: ROOT,
    withFileTypes: true,
    exclude: ({ name }) => name === 'node_modules' || name === '.git',
  })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath.slice(ROOT.length)}/${entry.name}`.replace(/^\//, '')),
];
const context = ignoreModule.default().add(fileOf('.dockerignore')).filter(checkout);

describe('the build context of the image', () => {
  it('holds no key, password, data folder or dump of the checkout', () => {
    expect(context.filter((name) => PLANTED.includes(name) || name.startsWith('deploy/'))).toEqual([]);
    const keys = context.filter((name) =>
      /-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/]/.test(fileOf(name)),
    );
    expect(keys).toEqual([]);
  });

  it('holds every file that its programs import, and every migration', () => {
    const held = new Set(context);
    const programs = context.filter((name) => /\.(ts|js)$/.test(name));
    expect(programs).toContain('bin/doorplate.js');
    const missing = programs.flatMap((name) =>
      [...fileOf(name).matchAll(/^(?:import|export) [^;]*?from '(\.[^']+)';/gm)]
        .map(([, path = '']) => posix.join(posix.dirname(name), path))
        .filter((path) => !held.has(path))
        .map((path) => `${path} of ${name}`),
    );
    expect(missing).toEqual([]);
    expect(context.filter((name) => name.startsWith('migrations/'))).toEqual(
      checkout.filter((name) => name.startsWith('migrations/')),
    );
  });

  it('becomes readable to the user of the image before it is copied there', () => {
    const dockerfile = fileOf('Dockerfile');
    expect(dockerfile).toMatch(/AS program\nWORKDIR \/app\nCOPY \. \.\nRUN chmod -R go=rX \.\n/);
    expect(dockerfile).toMatch(/COPY --from=program \/app \.\n(.*\n)*USER node\n/);
  });
});

describe('deploy/try', () => {
  it('says in one line that no Docker engine answers, and makes nothing', () => {
    const folder = makeTemporaryFolder('doorplate-try-');
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(`${folder}/docker`, '#!/bin/sh\nexit 1\n');
    chmodSync(`${folder}/docker`, 0o755);
    const { status, stdout, stderr } = spawnSync(`${ROOT}/deploy/try`, {
      env: { PATH: `${folder}:${process.env.PATH}`, TMPDIR: `${folder}/nowhere` },
      encoding: 'utf8',
    });
    expect({ status, stdout, stderr }).toEqual({
      status: 2,
      stdout: 'deploy/try: no Docker engine answers, so that nothing was tried\n',
      stderr: '',
    });
  });
});
