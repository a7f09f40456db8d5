import { describe, expect, it } from 'vitest';
import { MeasuredSocket } from '../../processors/webhooks/measured-socket.ts';
import { createTlsPaces, type TlsPace } from '../../processors/webhooks/tls-pace.ts';
import { eventually } from '../support/eventually.ts';
import { startRawReceiver } from '../support/receiver.ts';
import { undoing } from '../support/sending.ts';

describe('the pace of TLS', () => {
  /** Takes of each partner, in the order of their turns; `ms` each. */
  const pacing = () => {
    let now = 0;
    const paceOf = createTlsPaces(() => now);
    const taken: string[] = [];
    const want = (partnerId: string, ms: number): (() => void) =>
      paceOf(partnerId).whenDue(() => {
        taken.push(partnerId);
        return ms;
      });
    const pass = (ms: number): void => {
      now += ms;
    };
    return { want, pass, taken, takenAre: (all: string[]) => expect.poll(() => taken).toEqual(all) };
  };

  it('lets a partner take fifty milliseconds at once and a quarter of the time from then on', async () => {
    const { want, pass, taken, takenAre } = pacing();
    for (const ms of [50, 54, 1]) want('a', ms);
    await takenAre(['a', 'a']);
    pass(4 * 54 - 1);
    want('another', 0);
    await takenAre(['a', 'a', 'another']);
    pass(1);
    await takenAre(['a', 'a', 'another', 'a']);
    expect(taken).toHaveLength(4);
  });

  it('gives the turn to the partner that has taken least', async () => {
    const { want, pass, takenAre } = pacing();
    for (const partnerId of ['a', 'b', 'c']) for (const _ of [1, 2]) want(partnerId, 51);
    await takenAre(['a', 'b', 'c']);
    for (const _ of [1, 2, 3]) want('light', 1);
    pass(1_000);
    await takenAre(['a', 'b', 'c', 'light', 'light', 'light', 'a', 'b', 'c']);
  });

  it('has no turn for what is withdrawn', async () => {
    const { want, takenAre } = pacing();
    const withdraw = want('a', 1);
    want('b', 1);
    withdraw();
    await takenAre(['b']);
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
    let turns = 0;
    const { socket, received } = connectTo(port, {
      whenDue: (take) => {
        turns += 1;
        const timer = setTimeout(take, 5);
        return () => clearTimeout(timer);
      },
    });
    await eventually('it has ended', () => socket.readableEnded);
    expect(received()).toBe(text);
    expect(turns).toBeGreaterThan(1);
  });

  it('is one of many that cost much, of which one at a time is processed', async () => {
    let now = 0;
    const pace = createTlsPaces(() => now)('a');
    const costly: TlsPace = {
      whenDue: (take) =>
        pace.whenDue(() => {
          take();
          return 54;
        }),
    };
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
    const { port } = await sending('too late');
    const waiting: (() => number)[] = [];
    const withdrawn: (() => number)[] = [];
    const { socket, received } = connectTo(port, {
      whenDue: (take) => {
        waiting.push(take);
        return () => void withdrawn.push(take);
      },
    });
    await eventually('it waits', () => waiting.length > 0);
    socket.destroy();
    await eventually('it is closed', () => socket.closed);
    expect(withdrawn).toEqual(waiting);
    expect(received()).toBe('');
  });
});
