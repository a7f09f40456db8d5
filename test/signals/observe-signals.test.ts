import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isLeftOut, observeSignals } from '../../commands/signals/observe-signals.ts';
import { DAY, HOUR, isoTime } from '../../domain/kernel/time.ts';
import { type SignalEvent, visitorText } from '../../domain/signals/events.ts';
import { readSignals } from '../../domain/signals/observation.ts';
import { OutcomeUnknown } from '../../event-store/port.ts';
import { createDayKeys, type DayKeys, keyedDigest } from '../../platform/crypto/keyring.ts';
import { masterKeyFrom } from '../../platform/crypto/master-key.ts';
import { type SentSignal, signal } from '../support/signals.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let keys: DayKeys;
const digest = keyedDigest(randomBytes(32));
beforeAll(async () => {
  stack = await startTestStack();
  keys = createDayKeys({ pool: stack.pool, master: masterKeyFrom(randomBytes(32)), clock: stack.clock });
});
afterAll(() => stack.close());

const observe = (signals: readonly SentSignal[], store = stack.store) => {
  const read = readSignals({ signals });
  if (!read.ok) throw new Error(`${read.index} ${read.field}`);
  return observeSignals({ store, keys, digest }, read.value, stack.context());
};
const last = async () => {
  const [event] = await Array.fromAsync(
    stack.store.readStream('signals-2026-03-01', { direction: 'backwards', limit: 1 }),
  );
  if (event === undefined) throw new Error('there is none');
  return { ...event, data: event.data as SignalEvent['data'] };
};
const now = () => stack.clock.now();

describe('excluded domains', () => {
  it.each([
    ...['gmail.com', 'outlook.com', 'hotmail.co.uk', 'yahoo.com', 'icloud.com', 'gmx.de', 'web.de', 'qq.com'],
    ...[
      'proton.me',
      'protonmail.com',
      'fastmail.com',
      'hey.com',
      'aol.com',
      'mail.ru',
      'xn--mllmail-n2a.com',
    ],
    ...['test', 'a.test', 'example', 'acme.example', 'x.invalid', 'localhost', 'a.localhost'],
    ...['example.com', 'mail.example.net', 'example.org'],
  ])('include %s', (domain) => expect(isLeftOut(domain)).toBe(true));

  it.each([
    'acme.io',
    'google.com',
    'example.io',
    'notexample.com',
    'contest',
    'gmail.com.acme.io',
    'test.io',
  ])('do not include %s', (domain) => expect(isLeftOut(domain)).toBe(false));
});

describe('a recorded batch of signals', () => {
  it('holds no address, domain, site or page run in the clear and expires 30 days after its day', async () => {
    const sent = signal(now(), { page_run_id: 'run-7', installation_id: 'the-installation' });
    const { batch, eventIds } = await observe([sent]);
    const stored = await last();
    expect([stored.id, eventIds]).toEqual([batch, [sent.event_id]]);
    expect(stored.metadata.expires_at).toBe('2026-04-01T00:00:00.000Z');
    const text = JSON.stringify({ ...stored, position: null });
    for (const secret of ['8.8.4.4', 'acme', 'run-7', 'the-installation']) expect(text).not.toContain(secret);
    const key = await keys.of('2026-03-01');
    const [clue] = stored.data.clues;
    expect(clue?.visitor).toBe(key?.digest(visitorText('8.8.4.4')));
    expect(key?.open(Buffer.from(clue?.sealed ?? '', 'base64'), clue?.domain).toString()).toBe('acme.io');
  });

  it('has each name once, and only the name of an excluded domain', async () => {
    const kept = signal(now() - 30 * DAY + 1, { event_id: 'kept' });
    const { eventIds } = await observe([
      kept,
      signal(now(), { event_id: 'personal', email_domain: 'gmail.com' }),
      signal(now() - 30 * DAY, { event_id: 'old' }),
      { ...kept, email_domain: 'other.io' },
    ]);
    expect(eventIds).toEqual(['kept', 'personal', 'old']);
    const { data } = await last();
    expect(data.left_out).toEqual(['personal', 'old']);
    expect(data.clues).toMatchObject([{ event_id: 'kept', occurred_at: kept.occurred_at }]);
    expect(JSON.stringify(data)).not.toContain('gmail');
  });

  it("is never later than now, whatever the sender's clock says", async () => {
    await observe([signal(now() + HOUR)]);
    expect((await last()).data.clues).toMatchObject([{ occurred_at: isoTime(now()) }]);
  });

  it('maps equal values to equal tokens and different values to different ones', async () => {
    await observe([
      signal(now()),
      signal(now(), { ip: '::ffff:8.8.4.4' }),
      signal(now(), { ip: '8.8.8.8', email_domain: 'other.io', installation_id: 'installation-2' }),
    ]);
    const [one, same, other] = (await last()).data.clues;
    for (const field of ['visitor', 'domain', 'site'] as const) {
      expect(same?.[field]).toBe(one?.[field]);
      expect(other?.[field]).not.toBe(one?.[field]);
    }
  });

  it('stands once in the log when a response was lost and the append was sent again', async () => {
    let tries = 0;
    const store = {
      ...stack.store,
      append: async (...args: Parameters<typeof stack.store.append>) => {
        const appended = await stack.store.append(...args);
        tries += 1;
        if (tries === 1) throw new OutcomeUnknown('the answer was lost');
        return appended;
      },
    };
    const { revision } = await last();
    await observe([signal(now())], store);
    expect([tries, (await last()).revision]).toEqual([2, revision + 1]);
  });
});
