import { expect, it } from 'vitest';
import { HOUR } from '../../domain/kernel/time.ts';
import { createMisfits } from '../../http/server/misfits.ts';
import { createOwnHost, createServedHosts } from '../../http/server/own-host.ts';
import { createIsTrusted } from '../../http/server/visitor.ts';
import { aServer } from './shell.ts';

/** A server of an operator whose proxy is 10.0.0.1. @returns the settings that its log names after requests */
const served = (publicUrl: string) => {
  let now = 0;
  const settings: string[] = [];
  const misfits = createMisfits({
    publicUrl,
    isTrusted: createIsTrusted(['10.0.0.1/32']),
    log: { warn: (details) => void settings.push((details as { setting: string }).setting) },
    now: () => now,
  });
  const hosts = createServedHosts(createOwnHost(publicUrl), async (name) =>
    name === 'custom.example' ? 'a tracker' : null,
  );
  const app = aServer({ guard: { hosts, misfits, probes: { note: () => {} } } });
  const ask = async (headers: Record<string, string>, remoteAddress = '10.0.0.1', url = '/nowhere') => {
    await app.inject({ url, remoteAddress, headers: { host: 'api.example', ...headers } });
    return settings.splice(0);
  };
  const wait = (ms: number): void => {
    now += ms;
  };
  return { ask, wait };
};

const HTTPS = 'https://api.example';

it.each([
  [
    'requests come as they should',
    HTTPS,
    { 'x-forwarded-for': '9.9.9.9', 'x-forwarded-proto': 'https' },
    '10.0.0.1',
    [],
  ],
  ['a request comes for a custom domain', HTTPS, { host: 'custom.example' }, '10.0.0.1', []],
  ['a probe asks by a name of the loopback', HTTPS, { host: '127.0.0.1:3000' }, '127.0.0.1', []],
  ['a Host is not known', HTTPS, { host: 'www.example:8080' }, '10.0.0.1', ['PUBLIC_URL or PUBLIC_HOSTS']],
  ['a stranger forwards', HTTPS, { 'x-forwarded-for': '9.9.9.9' }, '10.0.0.2', ['TRUSTED_PROXIES']],
  ['a stranger forwards by RFC 7239', HTTPS, { forwarded: 'for=9.9.9.9' }, '10.0.0.2', ['TRUSTED_PROXIES']],
  [
    'a proxy forwards by RFC 7239 alone',
    HTTPS,
    { forwarded: 'for=9.9.9.9' },
    '10.0.0.1',
    ['TRUSTED_PROXIES'],
  ],
  [
    'callers come by https and PUBLIC_URL is http',
    'http://api.example',
    { 'x-forwarded-for': '9.9.9.9', 'x-forwarded-proto': 'https' },
    '10.0.0.1',
    ['PUBLIC_URL'],
  ],
] as const)(
  'the log names the setting once an hour where %s',
  async (_where, publicUrl, headers, peer, settings) => {
    const { ask, wait } = served(publicUrl);
    expect(await ask(headers, peer)).toEqual(settings);
    expect(await ask(headers, peer)).toEqual([]);
    wait(HOUR);
    expect(await ask(headers, peer)).toEqual(settings);
  },
);

it('the log names the setting where the pixel is called under a Host that is not known', async () => {
  const { ask } = served(HTTPS);
  expect(await ask({ host: 'cdn.example' }, '10.0.0.1', '/tracking/x')).toEqual([
    'PUBLIC_URL or PUBLIC_HOSTS',
  ]);
  expect(await ask({ host: 'cdn.example' }, '10.0.0.1', '/healthz')).toEqual([]);
});
