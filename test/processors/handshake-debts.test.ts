import { describe, expect, it } from 'vitest';
import { createHandshakeDebts } from '../../processors/webhooks/handshake-debts.ts';

describe('failed handshakes of a partner', () => {
  it('leave it one attempt at a time, and then none, until they are forgiven at 50 ms a second', () => {
    let now = 0;
    const { charge, roomOf } = createHandshakeDebts(() => now);
    charge('a', 500);
    expect(roomOf('a')).toBe(Number.POSITIVE_INFINITY);
    charge('a', 1);
    expect(roomOf('a')).toBe(1);
    charge('a', 2_500);
    expect(roomOf('a')).toBe(0);
    now = 1_000;
    expect(roomOf('a')).toBe(1);
    now = 51_000;
    expect(roomOf('a')).toBe(Number.POSITIVE_INFINITY);
  });

  it('cost no other partner anything', () => {
    const { charge, roomOf } = createHandshakeDebts(() => 0);
    charge('a', 10_000);
    expect(roomOf('b')).toBe(Number.POSITIVE_INFINITY);
  });

  it('that cost a millisecond each, twenty a second, slow nobody down', () => {
    let now = 0;
    const { charge, roomOf } = createHandshakeDebts(() => now);
    for (; now < 600_000; now += 50) charge('a', 1.5);
    expect(roomOf('a')).toBe(Number.POSITIVE_INFINITY);
  });
});
