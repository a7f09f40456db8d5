import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Position, StoreUnavailable } from '../../event-store/port.ts';
import { type FollowingProcessor, startProcessor } from '../../processors/follow.ts';
import { type House, openHouse } from '../support/house.ts';
import { until } from '../support/until.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const append = async (stream: string, data: object = {}) => {
  const { position } = await house.store.append(stream, 'any', [
    {
      id: randomUUID(),
      type: 'test.Happened.v1',
      data,
      metadata: { $correlationId: 'c', $causationId: 'c', at: new Date(house.clock.now()).toISOString() },
    },
  ]);
  return position as Position;
};

const started = (name: string, handle: FollowingProcessor['handle'], prefixes = ['followed-']) => {
  const passed = { at: -1n as bigint };
  const stopped: string[] = [];
  const processor = startProcessor(
    { name, prefixes, handle },
    {
      store: house.store,
      url: house.url,
      log: house.log,
      onPassed: (_name, position) => {
        passed.at = position;
      },
      onStopped: (stoppedName) => stopped.push(stoppedName),
    },
  );
  return { ...processor, passed, stopped };
};

describe('a processor that follows events', () => {
  it('handles the events of its streams in order, and passes the others', async () => {
    const seen: unknown[] = [];
    const processor = started('in-order', async (event) => {
      seen.push([event.stream, event.revision]);
    });
    await append('followed-a');
    await append('passed-b');
    await append('followed-a');
    const last = await append('passed-b');
    await until('the last event passed', () => processor.passed.at >= last);
    expect(seen).toEqual([
      ['followed-a', 0],
      ['followed-a', 1],
    ]);
    await processor.stop();
  });

  it('goes on after its checkpoint, and handles again what it may not have finished', async () => {
    const seen: number[] = [];
    const first = started('taken-up', async (event) => {
      if (event.stream === 'followed-c') seen.push(event.revision);
    });
    await append('followed-c');
    await until('the first one', () => seen.includes(0));
    await first.stop();
    await house.pool.query(`update work.processor set position = position - 1 where name = 'taken-up'`);
    const again: number[] = [];
    const second = started('taken-up', async (event) => {
      if (event.stream === 'followed-c') again.push(event.revision);
    });
    await append('followed-c');
    await until('both', () => again.includes(1));
    await second.stop();
    expect(again).toEqual([0, 1]);
  });

  it('tries again while the store is away', async () => {
    let tries = 0;
    const processor = started('patient', async (event) => {
      if (event.stream !== 'followed-d') return;
      tries += 1;
      if (tries < 3) throw new StoreUnavailable('away');
    });
    const at = await append('followed-d');
    await until('handled at last', () => processor.passed.at >= at);
    expect(tries).toBe(3);
    expect(processor.stopped).toEqual([]);
    await processor.stop();
  });

  it('stops at an event that it cannot handle, says which, and does not pass it', async () => {
    const processor = started('poisoned', async (event) => {
      if ((event.data as { poison?: boolean }).poison) throw new TypeError('not foreseen');
    });
    const at = await append('followed-e', { poison: true });
    await append('followed-e');
    const stoppedBy = await until('it says what stopped it', async () => {
      const [row] = await house.rows(`select stopped_by from work.processor where name = 'poisoned'`);
      return row?.stopped_by;
    });
    expect(stoppedBy).toContain('test.Happened.v1 at revision 0 of followed-e');
    expect(processor.stopped).toEqual(['poisoned']);
    expect(processor.passed.at < at).toBe(true);
    await processor.stop();
  });

  it('runs in one process of two', async () => {
    const seen: string[] = [];
    const here = started('alone', async (event) => void seen.push(`here ${event.id}`), ['single-']);
    const there = started('alone', async (event) => void seen.push(`there ${event.id}`), ['single-']);
    const at = await append('single-a');
    await until('handled', () => here.passed.at >= at || there.passed.at >= at);
    expect(seen).toHaveLength(1);
    await Promise.all([here.stop(), there.stop()]);
  });
});
