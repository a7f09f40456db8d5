import { describe, expect, it } from 'vitest';
import { MeasuredSocket } from '../../processors/webhooks/measured-socket.ts';
import { createTlsPaces, type TlsPace } from '../../processors/webhooks/tls-pace.ts';
import { eventually } from '../support/eventually.ts';
import { startRawReceiver } from '../support/receiver.ts';
import { undoing } from '../support/sending.ts';

describe('the pace of TLS', () => {
  it('lets a partner take fifty milliseconds at once and a quarter of the time from then on', () => {
    let now = 0;
    const paceOf = createTlsPaces(() => now);
    paceOf('a').spent(50);
    expect(paceOf('a').waitMs()).toBe(0);
    paceOf('a').spent(54);
    expect(paceOf('a').waitMs()).toBe(4 * 54);
    now = 4 * 54;
    expect(paceOf('a').waitMs()).toBe(0);
  });

  it('is one for all connections of a partner, and another for each partner', () => {
    const paceOf = createTlsPaces(() => 0);
    paceOf('a').spent(1_000);
    expect(paceOf('a').waitMs()).toBeGreaterThan(0);
    expect(paceOf('b').waitMs()).toBe(0);
  });
});

describe('a connection under TLS', () => {
  const connectTo = (port: number, pace: TlsPace): { socket: MeasuredSocket; received: () => string } => {
    const socket = new MeasuredSocket({ host: '127.0.0.1', port }, pace);
    undoing.push(() => socket.destroy());
    const parts: Buffer[] = [];
    socket.on('data', (part) => parts.push(part)).on('error', () => undefined);
    return { socket, received: () => Buffer.concat(parts).toString() };
  };
  const sending = async (text: string) => {
    const receiver = await startRawReceiver((socket) => socket.end(text));
    undoing.push(receiver.close);
    return receiver;
  };

  it('takes its bytes at the pace, whole and in order, although its receiver has closed it', async () => {
    const text = Array.from({ length: 1_500 }, (_, n) => `${n} `).join('');
    const { port } = await sending(text);
    let calls = 0;
    const { socket, received } = connectTo(port, {
      waitMs: () => (calls++ % 3 === 2 ? 0 : 5),
      spent: () => undefined,
    });
    await eventually('it has ended', () => socket.readableEnded);
    expect(received()).toBe(text);
    expect(calls).toBeGreaterThan(3);
  });

  it('is one of many that cost much, of which one at a time is processed', async () => {
    let now = 0;
    const pace = createTlsPaces(() => now)('a');
    const costly = { waitMs: pace.waitMs, spent: () => pace.spent(54) };
    const { port } = await sending('a chain of certificates');
    const connections = Array.from({ length: 40 }, () => connectTo(port, costly));
    const processed = (): number => connections.filter(({ received }) => received() !== '').length;
    await eventually('the first is processed', () => processed() > 0);
    for (const expected of [1, 2, 3]) {
      await eventually(`${expected} are processed`, () => processed() === expected);
      now += 4 * 54;
    }
  });

  it('takes nothing any more once it is destroyed', async () => {
    let isDue = false;
    const { port } = await sending('too late');
    let asked = 0;
    const waitMs = (): number => {
      asked += 1;
      return isDue ? 0 : 5;
    };
    const { socket, received } = connectTo(port, { waitMs, spent: () => undefined });
    await eventually('it waits', () => asked > 0);
    socket.destroy();
    isDue = true;
    await eventually('it is closed', () => socket.closed);
    expect(received()).toBe('');
  });
});
