import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { startDnsRelays } from '../../platform/dns-relays.ts';
import { type DnsAnswer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';

const undoing: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of undoing.splice(0)) await undo();
});

const addresses = (count: number) => Array.from({ length: count }, (_, n) => `198.51.100.${n}`);

/** A resolver that asks a DNS server over a relay. */
const relayed = async (answer: DnsAnswer) => {
  const server = await startDnsServer(() => answer);
  undoing.push(server.close);
  const [address = ''] = server.resolver.getServers();
  const resolver = new Resolver({ timeout: 200, tries: 1 });
  resolver.setServers(await startDnsRelays([address]));
  return { resolver, questions: server.questions, port: Number(address.split(':')[1]) };
};

it('passes questions and answers on', async () => {
  const { resolver, questions } = await relayed(addresses(3));
  const names = Array.from({ length: 100 }, (_, n) => `n${n}.example`);
  const answers = await Promise.all(names.map((name) => resolver.resolve4(name)));
  expect(answers).toEqual(names.map(() => addresses(3)));
  expect(questions.toSorted()).toEqual(names.map((name) => `A ${name}`).toSorted());
});

it('keeps the socket of an answered question for a second at most', async () => {
  const descriptors = () => readdirSync('/proc/self/fd').length;
  const { resolver } = await relayed(addresses(3));
  const before = descriptors();
  const newResolver = () => {
    const one = new Resolver({ timeout: 200, tries: 1 });
    one.setServers(resolver.getServers());
    return one;
  };
  await Promise.all(Array.from({ length: 50 }, () => newResolver().resolve4('a.example')));
  await eventually('the sockets are closed', descriptors, (count) => count <= before + 5, 5_000);
});

it('waits for a slow answer after a fast one to another question', async () => {
  const slow = () => setTimeout(800, addresses(1));
  const server = await startDnsServer((_, name) => (name === 'slow.example' ? slow() : addresses(1)));
  undoing.push(server.close);
  const resolver = new Resolver({ timeout: 5_000, tries: 1 });
  resolver.setServers(await startDnsRelays(server.resolver.getServers()));
  const names = ['fast.example', 'slow.example'];
  const answers = await Promise.all(names.map((name) => resolver.resolve4(name)));
  expect(answers).toEqual([addresses(1), addresses(1)]);
});

it.each(['NXDOMAIN', 'SERVFAIL'] as const)('passes %s on', async (failure) => {
  const { resolver } = await relayed(failure);
  const code = failure === 'NXDOMAIN' ? 'ENOTFOUND' : 'ESERVFAIL';
  await expect(resolver.resolve4('a.example')).rejects.toMatchObject({ code });
});

it('has a truncated answer fail, which is not asked for again over TCP', async () => {
  const { resolver, port, questions } = await relayed('truncated');
  const overTcp: Socket[] = [];
  const server = createServer((socket) => overTcp.push(socket)).listen(port, '127.0.0.1');
  await once(server, 'listening');
  undoing.push(() => server.close());
  await expect(resolver.resolve4('a.example')).rejects.toMatchObject({ syscall: 'queryA' });
  expect(questions).toEqual(['A a.example']);
  expect(overTcp).toEqual([]);
});

it('passes on no answer of more than 1,232 bytes', async () => {
  const { resolver, questions } = await relayed(addresses(100));
  await expect(resolver.resolve4('a.example')).rejects.toMatchObject({ code: 'ETIMEOUT' });
  expect(questions).toEqual(['A a.example']);
});

it('has the next server asked where nothing listens', async () => {
  const [gone, answering] = [await startDnsServer(() => 'silence'), await startDnsServer(() => addresses(1))];
  undoing.push(answering.close);
  const resolver = new Resolver({ timeout: 100, tries: 2 });
  const servers = [gone, answering].flatMap((server) => server.resolver.getServers());
  gone.close();
  resolver.setServers(await startDnsRelays(servers));
  expect(await resolver.resolve4('a.example')).toEqual(addresses(1));
});

it('survives a server to which no route leads', async () => {
  const resolver = new Resolver({ timeout: 100, tries: 3 });
  // Reserved for documentation (RFC 3849); a machine without IPv6 has no route, another gets no answer.
  resolver.setServers(await startDnsRelays(['2001:db8::1']));
  await expect(resolver.resolve4('a.example')).rejects.toMatchObject({ code: 'ETIMEOUT' });
});
