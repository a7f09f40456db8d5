import { lookup } from 'node:dns/promises';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  OutcomeUnknown,
  StoreBusy,
  StoreUnavailable,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import { BackendTimeout } from '../../http/errors/failures.ts';
import { isTransient } from '../../platform/postgres/unavailable.ts';

const withCode = (code: string, more: object = {}): Error =>
  Object.assign(new Error('an error'), { code, ...more });
const sqlState = (code: string): Error => withCode(code, { severity: 'ERROR' });

describe('a transient error', () => {
  it.each([
    ...[
      'ENOTFOUND',
      'EAI_AGAIN',
      'ECONNREFUSED',
      'ECONNRESET',
      'EPIPE',
      'EHOSTUNREACH',
      'ENETUNREACH',
      'ETIMEDOUT',
    ],
  ])('has the code %s', (code) => expect(isTransient(withCode(code))).toBe(true));

  it.each([
    '08006',
    '40001',
    '40P01',
    '53300',
    '53100',
    '57P01',
    '57P03',
    '57014',
    '55P03',
    '58030',
    '25006',
  ])('has the SQLSTATE %s', (code) => expect(isTransient(sqlState(code))).toBe(true));

  it.each([
    new StoreBusy(),
    new StoreUnavailable(),
    new OutcomeUnknown(),
    new WrongExpectedRevision('a stream', 1),
  ])("is the store's %o", (error) => expect(isTransient(error)).toBe(true));

  it('is a time-out, so that read models that are behind stop no processor', () => {
    expect(isTransient(new BackendTimeout('the read models are behind'))).toBe(true);
  });

  it('may be the cause of another error', () => {
    expect(isTransient(new Error('reading failed', { cause: withCode('ENOTFOUND') }))).toBe(true);
  });

  it("is Node's error for a name that does not resolve", async () => {
    const error = await lookup('no-such-host.invalid').catch((reason: unknown) => reason);
    expect(isTransient(error)).toBe(true);
  });
});

describe('a permanent error', () => {
  it("is a schema's refusal, also of a field named timeout", () => {
    const refused = z.object({ timeout: z.number() }).safeParse({ timeout: 'ECONNRESET 57P01' });
    expect(isTransient(refused.error)).toBe(false);
  });
});
