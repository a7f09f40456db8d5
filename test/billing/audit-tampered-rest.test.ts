import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createBillingFixture, foundIn, reveal, type Tampering } from '../support/billing-fixture.ts';
import type { TestDatabase } from '../support/database.ts';
import { revealStream } from '../support/reveals.ts';
import type { TestStack } from '../support/test-stack.ts';

let original: TestDatabase;
beforeAll(async () => {
  original = await createBillingFixture();
});
afterAll(() => original.drop());

const found = (...how: Tampering) => foundIn(original, ...how);

const inReceipt = (number: number, set: string) => (stack: TestStack) =>
  stack.pool.query(
    `update eventlog.event set data = (data::jsonb || $2::jsonb)::json where stream = $1 and revision = 1`,
    [revealStream(reveal(number).reveal_id), set],
  );

describe('an audit finds a receipt', () => {
  it('that is no longer marked as billable', async () => {
    const { differences } = await found(inReceipt(2, '{"billable": false}'));
    expect(differences).toEqual(['unit_mismatch of 2', 'unit_mismatch 2']);
  });

  it('whose result became empty', async () => {
    const { differences } = await found((stack) =>
      stack.pool.query(
        `update eventlog.event set data = jsonb_set(data::jsonb, '{result,company}', 'null')::json
         where stream = $1 and revision = 1`,
        [revealStream(reveal(2).reveal_id)],
      ),
    );
    expect(differences).toEqual(['unit_mismatch of 2']);
  });

  it('that names another key', async () => {
    expect((await found(inReceipt(2, '{"key_id": "key_x"}'))).differences).toEqual(['receipt_mismatch 2']);
  });

  it('that cannot be decoded', async () => {
    const { differences } = await found(inReceipt(2, '{"tracker_id": 7}'));
    expect(differences).toEqual(['unreadable_receipt of 2', 'unknown_reveal 2']);
  });

  it('whose completion was removed', async () => {
    const { differences } = await found((stack) =>
      stack.pool.query('delete from eventlog.event where stream = $1 and revision = 1', [
        revealStream(reveal(2).reveal_id),
      ]),
    );
    expect(differences).toEqual(['unknown_reveal 2', 'missing_completion of 2']);
  });

  it('whose completion was duplicated and billed twice', async () => {
    const { differences } = await found((stack) =>
      stack.pool.query(
        `insert into eventlog.event (stream, revision, id, type, data, metadata)
         select stream, 2, gen_random_uuid(), type, data, metadata from eventlog.event
         where stream = $1 and revision = 1`,
        [revealStream(reveal(2).reveal_id)],
      ),
    );
    expect(differences).toEqual(expect.arrayContaining(['duplicate_reveal 7', 'duplicate_reveal of 2']));
  });
});

describe('an audit finds a read model row', () => {
  const row = (set: string) => (stack: TestStack) =>
    stack.pool.query(`update read.reveal_unit set ${set} where reveal_id = $1`, [reveal(2).reveal_id]);

  it.each([
    [
      'whose unit was changed',
      row('units = 0'),
      ['read_model_mismatch 2', 'usage_mismatch', 'usage_mismatch'],
    ],
    [
      'of another month',
      row(`completed_at = '2026-03-01'`),
      ['read_model_mismatch 2', ...Array(4).fill('usage_mismatch')],
    ],
    [
      'of another key',
      row(`key_id = 'key_a'`),
      ['read_model_mismatch 2', 'usage_mismatch', 'usage_mismatch'],
    ],
    [
      'of another partner',
      row(`partner_id = '${randomUUID()}'`),
      // The key's own usage is the same.
      ['read_model_mismatch 2', 'usage_mismatch'],
    ],
    ['of another entry', row('ledger_number = 9'), ['read_model_mismatch 2']],
  ])('%s', async (_what, tamper, expected) => {
    expect((await found(tamper)).differences).toEqual(expected);
  });

  it('that was removed or invented', async () => {
    const removed = await found((stack) =>
      stack.pool.query('delete from read.reveal_unit where reveal_id = $1', [reveal(2).reveal_id]),
    );
    expect(removed.differences).toEqual(['read_model_mismatch 2', 'usage_mismatch', 'usage_mismatch']);
    const made = await found((stack) =>
      stack.pool.query(
        `insert into read.reveal_unit
         select gen_random_uuid(), partner_id, tracker_id, key_id, user_id, completed_at, units, position, null
         from read.reveal_unit where reveal_id = $1`,
        [reveal(2).reveal_id],
      ),
    );
    expect(made.differences).toEqual(['read_model_mismatch', 'usage_mismatch', 'usage_mismatch']);
  });
});
