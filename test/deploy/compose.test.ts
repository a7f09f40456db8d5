import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const fileOf = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly ports?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}
const compose = parse(fileOf('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
};
const services = Object.entries(compose.services);

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
});
