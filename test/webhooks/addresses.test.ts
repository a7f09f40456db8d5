import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, it, test } from 'vitest';
import type { DestinationPolicy } from '../../domain/webhooks/destination.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { destinationPolicy, type Resolver } from '../../processors/webhooks/delivery/addresses.ts';
import { createSender, type Sender } from '../../processors/webhooks/delivery/sender.ts';
import { type DnsAnswer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';

const CLOCK = { now: () => 0 };
const LIMITS = { totalMs: 3_000, dnsMs: 1_000, connectMs: 1_000 };
const REQUEST = {
  headers: { 'content-type': 'application/json' },
  body: Buffer.from('{}'),
  partner_id: 'a partner',
};
const failed = (error: string) => ({ http_status: null, error, retry_after_ms: null });
const DELIVERED = { http_status: 204, error: null, retry_after_ms: null };

const undoing: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of undoing.splice(0).reverse()) await undo();
});

const receiver = async (host?: string, port?: number): Promise<Receiver> => {
  const started = await startReceiver({ ...(host && { host }), ...(port && { port }) });
  undoing.push(started.close);
  return started;
};

const NO_RESOLVER: Resolver = {
  resolve4: () => Promise.reject(new Error('no resolver may be asked')),
  resolve6: () => Promise.reject(new Error('no resolver may be asked')),
};

/** Allows everything except networks, so only networks can refuse. */
const senderTo = (
  { port }: Receiver,
  allowNetworks: readonly string[],
  { resolver = NO_RESOLVER, ownOrigins = [] }: { resolver?: Resolver; ownOrigins?: readonly string[] } = {},
): Sender => {
  const policy: DestinationPolicy = { allowHttp: true, allowPorts: [port], allowNetworks, ownOrigins };
  const sender = createSender({
    policy,
    clock: CLOCK,
    resolver,
    limits: LIMITS,
    extraCa: null,
    isOwnDomain: async () => false,
  });
  undoing.push(sender.close);
  return sender;
};

/** Returns the given DNS answers one after the other and the last one for ever, split by address family. */
const answering = (...answers: readonly (readonly string[])[]): Resolver & { asked: () => number } => {
  let asked = 0;
  const next = (answer: readonly string[], six: boolean) => {
    const some = answer.filter((ip) => ip.includes(':') === six);
    const none = Object.assign(new Error('no data'), { code: 'ENODATA' });
    return some.length > 0 ? Promise.resolve([...some]) : Promise.reject(none);
  };
  return {
    asked: () => asked,
    resolve4: () => {
      asked += 1;
      return next(answers[Math.min(asked, answers.length) - 1] ?? [], false);
    },
    resolve6: () => next(answers[Math.min(Math.max(asked, 1), answers.length) - 1] ?? [], true),
  };
};

describe('an address that is not allowed', () => {
  test.each(['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', 'localhost', 'example.com@127.0.0.1'])(
    'is not connected to when a URL spells it %s',
    async (host) => {
      const target = await receiver();
      const sender = senderTo(target, ['203.0.113.0/24']);
      expect(await sender.send({ ...REQUEST, url: `http://${host}:${target.port}/` })).toEqual(
        failed('blocked_address'),
      );
      expect(await target.connections()).toBe(0);
    },
  );

  test.each([
    ['127.0.0.2'],
    ['127.0.0.1', '127.0.0.2'],
    ['127.0.0.2', '127.0.0.1'],
    ['127.0.0.1', '8.8.8.8', '10.0.0.1'],
    ['127.0.0.1', '::1'],
    ['127.0.0.1', '::ffff:10.0.0.1'],
    ['127.0.0.1', '64:ff9b::808:808'],
    ['127.0.0.1', 'fe80::1%eth0'],
    ['127.0.0.1', 'no address'],
    ['0.0.0.0'],
    ['::'],
  ])(
    'blocks the attempt, also beside an allowed address, when a name resolves to %s %s %s',
    async (...answer) => {
      const target = await receiver();
      const second = await receiver('127.0.0.2', target.port);
      const sender = senderTo(target, ['127.0.0.1/32'], { resolver: answering(answer) });
      expect(await sender.send({ ...REQUEST, url: `http://hooks.example:${target.port}/` })).toEqual(
        failed('blocked_address'),
      );
      expect(await target.connections()).toBe(0);
      expect(await second.connections()).toBe(0);
    },
  );

  it('is not reached over a redirect', async () => {
    const target = await receiver();
    const first = await startReceiver({
      answer: (_request, response) =>
        void response.writeHead(307, { location: `http://127.0.0.1:${target.port}/` }).end(),
    });
    undoing.push(first.close);
    const sender = senderTo(first, ['127.0.0.0/8']);
    expect(await sender.send({ ...REQUEST, url: `http://127.0.0.1:${first.port}/` })).toEqual({
      ...failed('redirect'),
      http_status: 307,
    });
    expect(await target.connections()).toBe(0);
  });
});

describe('a changing DNS answer', () => {
  it('reaches each attempt that began before it was asked for, and no other', async () => {
    const target = await receiver();
    const asked: PromiseWithResolvers<string[]>[] = [];
    const resolver: Resolver = {
      resolve4: () => {
        const answer = Promise.withResolvers<string[]>();
        asked.push(answer);
        return answer.promise;
      },
      resolve6: async () => [],
    };
    const sender = senderTo(target, ['127.0.0.1/32'], { resolver });
    const attempt = () => sender.send({ ...REQUEST, url: `http://hooks.example:${target.port}/` });
    const first = attempt();
    await eventually('the first lookup', () => asked.length === 1);
    const during = [attempt(), attempt()];
    asked[0]?.resolve(['127.0.0.1']);
    expect(await first).toEqual(DELIVERED);
    await eventually('their lookup', () => asked.length === 2);
    asked[1]?.resolve(['127.0.0.2']);
    expect(await Promise.all(during)).toEqual([failed('blocked_address'), failed('blocked_address')]);
    expect(target.requests).toHaveLength(1);
  });

  it('between the check and the connection has no effect: an attempt makes one query', async () => {
    const target = await receiver();
    const second = await receiver('127.0.0.2', target.port);
    const resolver = answering(['127.0.0.1'], ['127.0.0.2']);
    const sender = senderTo(target, ['127.0.0.1/32'], { resolver });
    expect(await sender.send({ ...REQUEST, url: `http://hooks.example:${target.port}/` })).toEqual(DELIVERED);
    expect(resolver.asked()).toBe(1);
    expect(target.requests).toHaveLength(1);
    expect(await second.connections()).toBe(0);
  });

  it('is refused when it changes to an address that is not allowed, with or without keep-alive', async () => {
    const target = await receiver();
    const sender = senderTo(target, ['127.0.0.1/32'], { resolver: answering(['127.0.0.1'], ['10.0.0.1']) });
    const url = `http://hooks.example:${target.port}/`;
    expect(await sender.send({ ...REQUEST, url })).toEqual(DELIVERED);
    expect(await sender.send({ ...REQUEST, url })).toEqual(failed('blocked_address'));
    expect(target.requests).toHaveLength(1);
  });

  it('is followed when it changes to another allowed address', async () => {
    const target = await receiver();
    const second = await receiver('127.0.0.2', target.port);
    const sender = senderTo(target, ['127.0.0.0/8'], { resolver: answering(['127.0.0.1'], ['127.0.0.2']) });
    const url = `http://hooks.example:${target.port}/`;
    expect(await sender.send({ ...REQUEST, url })).toEqual(DELIVERED);
    expect(await sender.send({ ...REQUEST, url })).toEqual(DELIVERED);
    expect([target.requests.length, second.requests.length]).toEqual([1, 1]);
  });
});

describe('a name with several addresses', () => {
  it('receives deliveries as long as one of them listens', async () => {
    const target = await receiver('127.0.0.3');
    const resolver = answering(['127.0.0.1', '127.0.0.2', '127.0.0.3']);
    const sender = senderTo(target, ['127.0.0.0/8'], { resolver });
    const url = `http://hooks.example:${target.port}/`;
    expect(await Promise.all([1, 2, 3].map(() => sender.send({ ...REQUEST, url })))).toEqual([
      DELIVERED,
      DELIVERED,
      DELIVERED,
    ]);
  });
});

it('delivers to a name with a hundred addresses, which DNS answers over TCP', async () => {
  const addresses = Array.from({ length: 100 }, (_, index) => `127.0.0.${index + 1}`);
  const dns = await startDnsServer((type) => (type === 'A' ? addresses : []));
  undoing.push(dns.close);
  const target = await startReceiver({ host: '0.0.0.0' });
  undoing.push(target.close);
  const sender = senderTo(target, ['127.0.0.0/8'], { resolver: dns.resolver });
  expect(await sender.send({ ...REQUEST, url: `http://hooks.example:${target.port}/` })).toEqual(DELIVERED);
});

describe('localhost', () => {
  test.each(['localhost', 'hooks.localhost'])(
    'as %s is the allowed loopback address and needs no DNS',
    async (name) => {
      const target = await receiver();
      const sender = senderTo(target, ['127.0.0.0/8']);
      expect(await sender.send({ ...REQUEST, url: `http://${name}:${target.port}/` })).toEqual(DELIVERED);
      expect(target.requests[0]?.headers.host).toBe(`${name}:${target.port}`);
    },
  );
});

describe("the service's own origin", () => {
  test.each([
    ['the same text', 'http://127.0.0.1', []],
    ['another name of the loopback', 'http://localhost', []],
    ['another spelling', 'http://[::ffff:127.0.0.1]', []],
    ['a name that leads there', 'http://hooks.example', ['127.0.0.1']],
  ] as const)('is refused by %s', async (_, origin, answer) => {
    const target = await receiver();
    const sender = senderTo(target, ['127.0.0.0/8', '::1/128'], {
      resolver: answering(answer),
      ownOrigins: [`http://127.0.0.1:${target.port}`],
    });
    expect(await sender.send({ ...REQUEST, url: `${origin}:${target.port}/` })).toEqual(failed('own_origin'));
    expect(await target.connections()).toBe(0);
  });
});

describe('DNS', () => {
  const asked = async (a: DnsAnswer, aaaa: DnsAnswer) => {
    const dns = await startDnsServer((type) => (type === 'A' ? a : aaaa));
    undoing.push(dns.close);
    const target = await receiver(typeof a === 'string' ? '::1' : '127.0.0.1');
    const sender = senderTo(target, ['127.0.0.1/32', '::1/128'], { resolver: dns.resolver });
    const outcome = await sender.send({ ...REQUEST, url: `http://hooks.example:${target.port}/` });
    return { outcome, connections: await target.connections(), questions: dns.questions };
  };

  test.each([
    ['an address of one family', ['127.0.0.1'], []],
    ['no such name for the other family', ['127.0.0.1'], 'NXDOMAIN'],
    ['a failure for the other family', ['127.0.0.1'], 'SERVFAIL'],
    ['a refusal for the other family', ['127.0.0.1'], 'REFUSED'],
    ['no answer for the other family', ['127.0.0.1'], 'silence'],
    ['what DNS64 makes of its address', ['127.0.0.1'], ['64:ff9b::7f00:1']],
    ['a failure for the first family', 'SERVFAIL', ['::1']],
    ['no answer for the first family', 'silence', ['::1']],
  ] as const)('accepts %s', async (_, a, aaaa) => {
    const { outcome, questions } = await asked(a, aaaa);
    expect(outcome).toEqual(DELIVERED);
    expect(new Set(questions)).toEqual(new Set(['A hooks.example', 'AAAA hooks.example']));
  });

  test.each([
    ['is private', ['10.0.0.1'], 'SERVFAIL'],
    ['is one that DNS64 makes of another', ['127.0.0.1'], ['64:ff9b::a00:1']],
    ['is one that DNS64 makes of a private one', ['10.0.0.1'], ['64:ff9b::a00:1']],
    ['is one that DNS64 makes, and the other family fails', 'SERVFAIL', ['64:ff9b::7f00:1']],
  ] as const)('blocks the attempt where an address %s', async (_, a, aaaa) => {
    const { outcome, connections } = await asked(a, aaaa);
    expect(outcome).toEqual(failed('blocked_address'));
    expect(connections).toBe(0);
  });

  it('waits for the second family no longer than two thirds of its time limit', async () => {
    const target = await receiver();
    const silent = { resolve4: async () => ['127.0.0.1'], resolve6: () => new Promise<string[]>(() => {}) };
    const sender = senderTo(target, ['127.0.0.1/32'], { resolver: silent });
    expect(await sender.send({ ...REQUEST, url: `http://hooks.example:${target.port}/` })).toEqual(DELIVERED);
  });

  test.each([
    ['no address', [], []],
    ['no such name', 'NXDOMAIN', 'NXDOMAIN'],
    ['a refusal', 'REFUSED', 'REFUSED'],
    ['a failure beside no address', [], 'SERVFAIL'],
    ['nothing', 'silence', 'silence'],
  ] as const)('fails the attempt with %s', async (_, a, aaaa) => {
    const { outcome, connections } = await asked(a, aaaa);
    expect(outcome).toEqual(failed('dns'));
    expect(connections).toBe(0);
  });
});

describe('the destination policy of webhooks', () => {
  it('allows public HTTPS on its own port, and never the service itself', () => {
    const env = { PUBLIC_URL: 'https://doorplate.example/', PUBLIC_HOSTS: 'former.example' };
    expect(destinationPolicy(loadConfig(env))).toEqual({
      allowHttp: false,
      allowPorts: [],
      allowNetworks: [],
      onlyNetworks: false,
      ownOrigins: ['https://doorplate.example', 'https://former.example', 'http://127.0.0.1:3000'],
    });
  });

  it('allows more for development', () => {
    const env = {
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_PORTS: '9000,9001',
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8,::1/128',
    };
    expect(destinationPolicy(loadConfig(env))).toMatchObject({
      allowHttp: true,
      allowPorts: [9000, 9001],
      allowNetworks: ['127.0.0.0/8', '::1/128'],
    });
  });

  it('refuses every address of a machine on which the service listens on all addresses', () => {
    for (const HOST of ['0.0.0.0', '::']) {
      const { ownOrigins } = destinationPolicy(loadConfig({ HOST, PORT: '8080' }));
      expect(ownOrigins).toContain('http://127.0.0.1:8080');
      expect(ownOrigins.every((origin) => URL.canParse(origin))).toBe(true);
      const addresses = Object.values(networkInterfaces()).flatMap((some) => some ?? []);
      expect(ownOrigins).toHaveLength(addresses.filter(({ address }) => !address.includes('%')).length);
    }
    expect(destinationPolicy(loadConfig({ HOST: '::1' })).ownOrigins).toEqual(['http://[::1]:3000']);
  });
});
