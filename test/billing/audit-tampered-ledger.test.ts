import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../domain/billing/ledger.ts';
import {
  createBillingFixture,
  foundIn,
  LEDGER,
  PARTNER,
  reveal,
  type Tampering,
} from '../support/billing-fixture.ts';
import type { TestDatabase } from '../support/database.ts';
import { type Manipulation, manipulations } from '../support/manipulations.ts';
import type { TestStack } from '../support/test-stack.ts';

let original: TestDatabase;
beforeAll(async () => {
  original = await createBillingFixture();
});
afterAll(() => original.drop());

const found = (...how: Tampering) => foundIn(original, ...how);

const inLedger = (revision: number, set: string) => (stack: TestStack) =>
  stack.pool.query(
    `update eventlog.event set data = (data::jsonb || $3::jsonb)::json where stream = $1 and revision = $2`,
    [LEDGER, revision, set],
  );

type Entry = Parameters<typeof digestOf>[1];

/** Rewrites the ledger from an entry on with every digest correct: only an anchor can detect it. */
const rewritten = (from: number, change: (data: Entry) => object) => async (stack: TestStack) => {
  let previous: string | null = null;
  for (let number = from; ; number += 1) {
    const [row] = await stack.rows('select data from eventlog.event where stream = $1 and revision = $2', [
      LEDGER,
      number,
    ]);
    if (!row) return;
    const data = row.data as Entry;
    const entry = { ...data, ...(number === from ? change(data) : { previous: previous ?? data.previous }) };
    previous = digestOf(number, entry);
    await inLedger(number, JSON.stringify({ ...entry, digest: previous }))(stack);
  }
};

describe('an audit finds a ledger row', () => {
  it('whose unit was changed', async () => {
    const { differences, verified } = await found(inLedger(5, '{"units": 1}'));
    expect(differences).toEqual([
      'digest_mismatch 5',
      'unit_mismatch 5',
      'read_model_mismatch 5',
      'usage_mismatch',
      'usage_mismatch',
    ]);
    expect(verified).toEqual({ code: 1, stdout: 'digest_mismatch at entry 5\n' });
  });

  it('whose digest was changed', async () => {
    const { differences, verified } = await found(inLedger(3, `{"digest": "${'a'.repeat(64)}"}`));
    expect(differences).toEqual(['digest_mismatch 3', 'previous_mismatch 4']);
    expect(verified.stdout).toBe('digest_mismatch at entry 3\n');
  });

  it('whose month was changed', async () => {
    const { differences } = await found(inLedger(4, '{"completed_at": "2026-03-01T00:00:00.000Z"}'));
    expect(new Set(differences)).toEqual(
      new Set(['digest_mismatch 4', 'receipt_mismatch 4', 'read_model_mismatch 4', 'usage_mismatch']),
    );
  });

  it('that is not an entry, or not an object, or has an invalid time', async () => {
    const type = await found((stack) =>
      stack.pool.query(`update eventlog.event set type = 'x.Y.v1' where stream = $1 and revision = 2`, [
        LEDGER,
      ]),
    );
    expect(type.differences[0]).toBe('unreadable_entry 2');
    const none = await found((stack) =>
      stack.pool.query(`update eventlog.event set data = 'null' where stream = $1 and revision = 2`, [
        LEDGER,
      ]),
    );
    expect(none.differences[0]).toBe('unreadable_entry 2');
    const year = await found(inLedger(2, '{"completed_at": "0000-01-01T00:00:00.000Z"}'));
    expect(year.differences[0]).toBe('digest_mismatch 2');
  });

  it('that was the last and was removed', async () => {
    const { differences } = await found((stack) =>
      stack.pool.query('delete from eventlog.event where stream = $1 and revision = 6', [LEDGER]),
    );
    expect(differences).toEqual([
      'missing_entry of 6',
      'read_model_mismatch 6',
      'usage_mismatch',
      'usage_mismatch',
    ]);
  });

  it('that was duplicated', async () => {
    const { differences, verified } = await found((stack) =>
      stack.pool.query(
        `insert into eventlog.event (stream, revision, id, type, data, metadata)
         select stream, 7, gen_random_uuid(), type, data, metadata from eventlog.event
         where stream = $1 and revision = 4`,
        [LEDGER],
      ),
    );
    expect(differences).toEqual([
      'previous_mismatch 7',
      'digest_mismatch 7',
      'order 7',
      'duplicate_reveal 7',
      'read_model_mismatch 7',
      'usage_mismatch',
      'usage_mismatch',
    ]);
    expect(verified.stdout).toBe('previous_mismatch at entry 7\n');
  });

  it('that belongs to another partner', async () => {
    for (const tamper of [
      inLedger(6, `{"partner_id": "${randomUUID()}"}`),
      rewritten(6, () => ({ partner_id: randomUUID() })),
    ]) {
      const { differences, verified } = await found(tamper);
      expect(differences).toEqual(['digest_mismatch 6', 'receipt_mismatch 6']);
      expect(verified.stdout).toBe('digest_mismatch at entry 6\n');
    }
  });

  it('that was changed long ago while all later digests were recomputed', async () => {
    const head = (await found(async () => {})).report.months[0]?.head_digest ?? '';
    const rows = (stack: TestStack) =>
      stack.pool.query('update read.reveal_unit set units = 1 where reveal_id = $1', [reveal(1).reveal_id]);
    const forge = async (stack: TestStack) => {
      await rewritten(1, () => ({ units: 1 }))(stack);
      await rows(stack);
    };
    expect((await found(forge)).differences).toEqual([]);
    const { differences, verified } = await found(forge, { digest: head });
    expect(differences).toEqual(['anchor_missing']);
    expect(verified).toEqual({ code: 1, stdout: `anchor_missing: no entry has the digest ${head}\n` });
  });
});

describe('an audit of a ledger whose digests are all correct again', () => {
  const by = (manipulate: Manipulation) => async (stack: TestStack) => {
    const client = await stack.pool.connect();
    await manipulate(client, PARTNER).finally(() => client.release());
  };

  it.each<[string, Manipulation, string[]]>([
    ['finds an invented entry', manipulations.inventEntry, ['missing_receipt']],
    [
      'finds a completion that is gone with its entry and its row',
      manipulations.removeCompletion,
      ['missing_completion'],
    ],
    ['finds changed units, in the row too', manipulations.changeUnits, ['unit_mismatch']],
    ['needs an anchor for an end that is gone with every trace of its reveals', manipulations.cutTheEnd, []],
  ])('%s', async (_what, manipulate, kinds) => {
    const { differences } = await found(by(manipulate));
    expect([...new Set(differences.map((difference) => difference.split(' ')[0]))]).toEqual(kinds);
  });
});
