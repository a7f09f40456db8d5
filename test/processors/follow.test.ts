import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Position, StoreUnavailable } from '../../event-store/port.ts';
import type { FollowingProcessor, FollowOptions } from '../../processors/follow.ts';
import { startProcessor } from '../support/leading.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

const append = async (stream: string, data: object = {}) => {
  const { position } = await stack.store.append(stream, 'any', [
    {
      id: randomUUID(),
      type: 'test.Happened.v1',
      data,
      metadata: { $correlationId: 'c', $causationId: 'c', at: new Date(stack.clock.now()).toISOString() },
    },
  ]);
  return position as Position;
};

const started = (
  name: string,
  handle: FollowingProcessor['handle'],
  prefixes = ['followed-'],
  more: Partial<FollowingProcessor> = {},
  options: Partial<FollowOptions> = {},
) => {
  const passed = { at: -1n as bigint };
  const stopped: string[] = [];
  const processor = startProcessor({ name, prefixes, handle, ...more }, stack, {
    onPassed: (_name, position) => {
      passed.at = position;
    },
    onStopped: (stoppedName) => stopped.push(stoppedName),
    ...options,
  });
  return { ...processor, passed, stopped };
};

describe('a processor that follows events', () => {
  it('handles the events of its streams in order and skips others', async () => {
    const seen: unknown[] = [];
    const processor = started('in-order', async (event) => {
      seen.push([event.stream, event.revision]);
    });
    await append('followed-a');
    await append('passed-b');
    await append('followed-a');
    const last = await append('passed-b');
    await until('the last event is handled', () => processor.passed.at >= last);
    expect(seen).toEqual([
      ['followed-a', 0],
      ['followed-a', 1],
    ]);
    await processor.stop();
  });

  it('resumes after its checkpoint and handles again what it may not have finished', async () => {
    const seen: number[] = [];
    const first = started('taken-up', async (event) => {
      if (event.stream === 'followed-c') seen.push(event.revision);
    });
    await append('followed-c');
    await until('the first one', () => seen.includes(0));
    await first.stop();
    await stack.pool.query(`update work.processor set position = position - 1 where name = 'taken-up'`);
    const again: number[] = [];
    const second = started('taken-up', async (event) => {
      if (event.stream === 'followed-c') again.push(event.revision);
    });
    await append('followed-c');
    await until('both', () => again.includes(1));
    await second.stop();
    expect(again).toEqual([0, 1]);
  });

  it('retries while the store is unavailable', async () => {
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

  it('stops at an event that it cannot handle, reports it and does not skip it', async () => {
    const processor = started('poisoned', async (event) => {
      if ((event.data as { poison?: boolean }).poison) throw new TypeError('not foreseen');
    });
    const at = await append('followed-e', { poison: true });
    await append('followed-e');
    const stoppedBy = await until('the processor reports the event that stopped it', async () => {
      const [row] = await stack.rows(`select stopped_by from work.processor where name = 'poisoned'`);
      return row?.stopped_by;
    });
    expect(stoppedBy).toContain('test.Happened.v1 at revision 0 of followed-e');
    expect(processor.stopped).toEqual(['poisoned']);
    expect(processor.passed.at < at).toBe(true);
    await processor.stop();
  });

  it('retries the event that stopped it, reports it until then, and continues', async () => {
    let mended = false;
    const running: string[] = [];
    const processor = started(
      'mended',
      async ({ data }) => {
        if ((data as { poison?: string }).poison === 'mended' && !mended) throw new TypeError('not foreseen');
      },
      ['mended-'],
      {},
      { retryStoppedMs: 20, onRunning: (name) => running.push(name) },
    );
    await append('mended-a', { poison: 'mended' });
    const at = await append('mended-a');
    await until('it was tried several times', () => processor.stopped.length > 2);
    const stoppedBy = async () =>
      (await stack.rows(`select stopped_by from work.processor where name = 'mended'`))[0]?.stopped_by;
    expect(await stoppedBy()).toContain('not foreseen');
    expect(running).toHaveLength(1);
    mended = true;
    await until('the processor continues', () => processor.passed.at >= at);
    expect(await stoppedBy()).toBe(null);
    expect(running).toHaveLength(2);
    await processor.stop();
  });

  it('keeps the order of a lane over its streams and hands over events that arrived together as one batch', async () => {
    const together: string[][] = [];
    const idOf = ({ data }: { data: object }) => (data as { is: string }).is;
    for (const is of ['a1', 'b1', 'a2', 'a3', 'b2']) await append(`laned-${is}`, { is });
    const last = await append('laned-a4', { is: 'a4' });
    const lanes = {
      lane: (event: { data: object }) => idOf(event).slice(0, 1),
      handleAll: async (events: readonly { data: object }[]) => void together.push(events.map(idOf)),
    };
    const processor = started('laned', async (event) => void together.push([idOf(event)]), ['laned-'], lanes);
    await until('all events are handled', () => processor.passed.at >= last);
    expect(together.flat().filter((is) => is.startsWith('a'))).toEqual(['a1', 'a2', 'a3', 'a4']);
    expect(together.flat().filter((is) => is.startsWith('b'))).toEqual(['b1', 'b2']);
    expect(together.length).toBeLessThan(6);
    await processor.stop();
  });

  it('handles the events of a failed batch one by one to find the failing one', async () => {
    const seen: number[] = [];
    for (const nth of [1, 2]) await append('mixed-a', { nth });
    const at = await append('mixed-a', { poison: true });
    await append('mixed-a', { nth: 4 });
    const refuse = async () => {
      throw new TypeError('not all of these');
    };
    const one: FollowingProcessor['handle'] = async ({ data }) => {
      const { nth } = data as { nth?: number };
      if (nth === undefined) throw new TypeError('not this one');
      seen.push(nth);
    };
    const processor = started('mixed', one, ['mixed-'], { handleAll: refuse });
    await until('it stops', () => processor.stopped.length > 0);
    expect(seen).toEqual([1, 2]);
    expect(processor.passed.at < at).toBe(true);
    await processor.stop();
  });

  it('receives expired events when it asks for them', async () => {
    const seen: string[] = [];
    const expired = new Date(stack.clock.now()).toISOString();
    const { position } = await stack.store.append('mortal-a', 'no_stream', [
      {
        id: randomUUID(),
        type: 'test.Happened.v1',
        data: {},
        metadata: { $correlationId: 'c', $causationId: 'c', at: expired, expires_at: expired },
      },
    ]);
    const note = (name: string) => async () => void seen.push(name);
    const late = started('late', note('late'), ['mortal-'], { includeExpired: true });
    const usual = started('usual', note('usual'), ['mortal-']);
    await until('both have handled the event', () =>
      [late, usual].every(({ passed }) => passed.at >= (position ?? 0n)),
    );
    expect(seen).toEqual(['late']);
    await Promise.all([late.stop(), usual.stop()]);
  });
});
