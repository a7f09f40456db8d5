import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventCatalogue } from '../../domain/event-catalogue.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { nothingStops } from '../support/consumers-caught-up.ts';
import { extremeEvent } from '../support/extreme-events.ts';

const EVENTS = Number(process.env.EXTREME_EVENTS ?? 600);
const metadata = { $correlationId: 'c', $causationId: 'c', at: '2026-03-01T12:00:00.000Z' };

let api: TestApi;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

it('stored events with extreme values stop no processor and no projection', async () => {
  const { store } = api.runtime;
  const events = extremeEvent(eventCatalogue.flatMap(({ events }) => Object.keys(events)));
  const seed = Math.floor(Math.random() * 2 ** 31);
  for (const { stream, ...event } of fc.sample(events, { numRuns: EVENTS, seed })) {
    await store.append(stream, 'any', [{ ...event, id: randomUUID(), metadata }]);
  }
  await expect(nothingStops(api), `seed ${seed}`).resolves.toBeUndefined();
});
