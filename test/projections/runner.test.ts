import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Projection } from '../../projections/projection.ts';
import { rebuild } from '../../projections/rebuild.ts';
import { startProjections } from '../support/leading.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
  for (const table of ['tally', 'other']) {
    await stack.pool.query(`create table read.${table} (stream text primary key, n int not null)`);
    await stack.pool.query(`comment on table read.${table} is 'of a test'`);
  }
});
afterAll(() => stack.close());

/** Counts events per stream; fails on an event with the content `poison` for this projection. */
const tallyOf = (name: string): Projection => ({
  name,
  tables: [name],
  async apply(events, db) {
    for (const event of events) {
      if ((event.data as { poison?: string }).poison === name) throw new Error('cannot apply');
      await db.query(
        `insert into ${name} as t (stream, n) values ($1, 1) on conflict (stream) do update set n = t.n + 1`,
        [event.stream],
      );
    }
  },
});
const tally = tallyOf('tally');
const other = tallyOf('other');

const append = async (stream: string, count: number, data: object = {}) => {
  for (let n = 0; n < count; n += 1) {
    await stack.store.append(stream, 'any', [
      {
        id: randomUUID(),
        type: 'test.Happened.v1',
        data,
        metadata: { $correlationId: 'c', $causationId: 'c', at: new Date(stack.clock.now()).toISOString() },
      },
    ]);
  }
};
const countIn = async (table: string, stream: string) =>
  (await stack.rows(`select n from read.${table} where stream = $1`, [stream]))[0]?.n ?? 0;

/** As projections update the rows of a batch. */
const UPDATE_BY_KEYS = `
  explain update other t set n = n.n from json_populate_recordset(null::other, '[]') n where t.stream = n.stream`;

describe('the projections', () => {
  it('apply every event once, whatever was stored before they started', async () => {
    await append('before', 5);
    const runner = stack.project([tally]);
    await append('after', 5);
    await stack.caughtUp([tally]);
    expect([await countIn('tally', 'before'), await countIn('tally', 'after')]).toEqual([5, 5]);
    await runner.stop();
  });

  it('are led by another process when the first releases its lease, and lose nothing', async () => {
    const first = stack.project([tally]);
    await append('taken over', 1);
    await stack.caughtUp([tally]);
    const second = stack.project([tally]);
    await append('taken over', 1);
    await stack.caughtUp([tally]);
    await first.stop();
    await append('taken over', 3);
    await stack.caughtUp([tally]);
    expect(await countIn('tally', 'taken over')).toBe(5);
    await second.stop();
  });

  it('apply nothing twice when two processes believe that they lead', async () => {
    const runner = stack.project([tally]);
    await append('twice', 3);
    await stack.caughtUp([tally]);
    // Simulates a second leader: the checkpoint is beyond the position that the first one holds.
    const { position } = await stack.store.append('twice', 'stream_exists', [
      {
        id: randomUUID(),
        type: 'test.Happened.v1',
        data: {},
        metadata: { $correlationId: 'c', $causationId: 'c', at: new Date(stack.clock.now()).toISOString() },
      },
    ]);
    await stack.progress.reached(['tally'], position, 5_000);
    await stack.pool.query(
      `update read.projection set position = position - 1 where name = 'tally';
       update read.tally set n = n - 1 where stream = 'twice'`,
    );
    await append('twice', 1);
    await until('all five applied', async () => (await countIn('tally', 'twice')) === 5);
    await runner.stop();
  });

  it('stop alone at an event that they cannot apply and report it', async () => {
    const runner = stack.project([tally, other]);
    await append('healthy', 2);
    await append('poisoned', 1, { poison: 'other' });
    await append('healthy', 2);
    await stack.caughtUp([tally]);
    expect(await countIn('tally', 'healthy')).toBe(4);
    const stoppedBy = await until('the projection reports the event that stopped it', async () => {
      const [row] = await stack.rows(`select stopped_by from read.projection where name = 'other'`);
      return row?.stopped_by;
    });
    expect(await countIn('other', 'healthy')).toBe(2);
    expect(stoppedBy).toContain('test.Happened.v1 at revision 0 of poisoned');
    // The event is deleted and the read model rebuilt: it runs again without a restart.
    await stack.store.expire('poisoned', 0);
    await rebuild({ store: stack.store, url: stack.url, projections: [other] });
    await append('healthy', 1);
    await until('the corrected projection continues', async () => {
      await append('nudge', 1);
      return (await countIn('other', 'healthy')) === 5;
    });
    await runner.stop();
  });

  it('retry the event that stopped one of them and continue when that succeeds', async () => {
    let mended = false;
    const flaky: Projection = {
      ...tally,
      async apply(events, db) {
        if (!mended && events.some(({ stream }) => stream === 'flaky')) throw new Error('not yet');
        await tally.apply(events, db);
      },
    };
    const stopped: string[] = [];
    const runner = startProjections([flaky, other], {
      ...stack,
      retryStoppedMs: 20,
      onStopped: (name) => stopped.push(name),
    });
    await append('flaky', 1);
    await append('beside', 1);
    await until(
      'it was tried several times, and the other went on',
      async () => stopped.length > 2 && (await countIn('other', 'beside')) === 1,
    );
    mended = true;
    await stack.caughtUp([tally]);
    expect([await countIn('tally', 'flaky'), await countIn('tally', 'beside')]).toEqual([1, 1]);
    expect(await stack.rows(`select stopped_by from read.projection where name = 'tally'`)).toEqual([
      { stopped_by: null },
    ]);
    await runner.stop();
  });

  it('are not held up by one that lags, which joins them when it has caught up', async () => {
    await append('long ago', 30);
    const first = stack.project([tally, other]);
    await stack.caughtUp([tally, other]);
    await first.stop();
    await stack.pool.query(
      `update read.projection set position = null where name = 'other'; delete from read.other`,
    );
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const slow: Projection = {
      ...other,
      async apply(events, db) {
        await released;
        await other.apply(events, db);
      },
    };
    const runner = startProjections([tally, slow], stack);
    await append('now', 1);
    await stack.caughtUp([tally]);
    expect([await countIn('tally', 'now'), await countIn('other', 'now')]).toEqual([1, 0]);
    release();
    await stack.caughtUp([other]);
    expect([await countIn('other', 'long ago'), await countIn('other', 'now')]).toEqual([30, 1]);
    await append('joined', 2);
    await stack.caughtUp([tally, other]);
    expect([await countIn('tally', 'joined'), await countIn('other', 'joined')]).toEqual([2, 2]);
    await runner.stop();
  });

  it('find rows by their keys, even with plans that were made while a table was small', async () => {
    const plans: string[] = [];
    const explained: Projection = {
      ...other,
      async apply(_events, db) {
        const { rows } = await db.query(UPDATE_BY_KEYS);
        plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      },
    };
    await stack.pool.query(
      `insert into read.other select 'small ' || n, 1 from generate_series(1, 20) n; analyze read.other`,
    );
    const runner = stack.project([explained]);
    await append('explained', 1);
    await stack.caughtUp([explained]);
    await runner.stop();
    await rebuild({ store: stack.store, url: stack.url, projections: [explained] });
    expect(plans.length).toBeGreaterThan(1);
    for (const plan of plans) expect(plan).toMatch(/Index Cond: \(stream = n\.stream\)/);
  });

  it('are rebuilt beside the ones in use, which continue from there', async () => {
    const runner = stack.project([tally]);
    await stack.caughtUp([tally]);
    await stack.pool.query(`update read.tally set n = 1000 where stream = 'before'`);
    const appending = append('meanwhile', 40);
    await rebuild({ store: stack.store, url: stack.url, projections: [tally] });
    await appending;
    await append('afterwards', 2);
    await stack.caughtUp([tally]);
    expect([
      await countIn('tally', 'before'),
      await countIn('tally', 'meanwhile'),
      await countIn('tally', 'afterwards'),
    ]).toEqual([5, 40, 2]);
    await runner.stop();
  });
});
