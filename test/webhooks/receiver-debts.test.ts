import { describe, expect, it } from 'vitest';
import { createReceiverDebts } from '../../processors/webhooks/receiver-debts.ts';

describe('the failed handshakes of a partner', () => {
  it('limit it to one attempt at a time and then to none, until 50 ms a second are forgiven', () => {
    let now = 0;
    const { charge, roomOf } = createReceiverDebts(() => now);
    charge('a', 500, 'failed');
    expect(roomOf('a')).toBe(Number.POSITIVE_INFINITY);
    charge('a', 1, 'failed');
    expect(roomOf('a')).toBe(1);
    charge('a', 2_500, 'failed');
    expect(roomOf('a')).toBe(0);
    now = 1_000;
    expect(roomOf('a')).toBe(1);
    now = 51_000;
    expect(roomOf('a')).toBe(Number.POSITIVE_INFINITY);
  });

  it('do not limit other partners', () => {
    const { charge, roomOf } = createReceiverDebts(() => 0);
    charge('a', 10_000, 'failed');
    expect(roomOf('b')).toBe(Number.POSITIVE_INFINITY);
  });

  it('limit no partner at twenty a second that cost one millisecond each', () => {
    let now = 0;
    const { charge, roomOf } = createReceiverDebts(() => now);
    for (; now < 600_000; now += 50) charge('a', 1.5, 'failed');
    expect(roomOf('a')).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('the successful TLS handshakes and the decryption of responses of a partner', () => {
  it('limit it where receivers close every connection, at a quarter of the event loop', () => {
    let now = 0;
    const { charge, roomOf } = createReceiverDebts(() => now);
    for (; now < 60_000; now += 10) charge('a', 2, 'succeeded');
    expect(roomOf('a')).toBe(Number.POSITIVE_INFINITY);
    for (; now < 120_000; now += 10) charge('a', 4, 'succeeded');
    expect(roomOf('a')).toBe(1);
  });

  it('limit it where decrypting responses takes long, at a quarter of the event loop', () => {
    let now = 0;
    const { charge, roomOf } = createReceiverDebts(() => now);
    for (; now < 60_000; now += 10) charge('a', 20, 'response');
    expect(roomOf('a')).toBe(0);
  });
});
