import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONSUMERS, followersOf } from '../../bin/groups.ts';
import { eventCatalogue } from '../../domain/event-catalogue.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import { createConsumerProgress } from '../../processors/consumers.ts';
import { allProjections } from '../../projections/all.ts';
import { relevantTo } from '../../projections/projection.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

/** The kinds of streams that retention deletes or truncates, and the consumers that follow each. */
const FOLLOWERS: Readonly<Record<string, readonly string[]>> = {
  'tab-': ['projection sessions', 'projection tracker-usage', 'processor queue-webhook-events'],
  'reveal-': [
    'projection reveals',
    'projection reveal-units',
    'projection tracker-usage',
    'processor bill-completed-reveals',
    'processor enrich-reveals',
    'processor queue-webhook-events',
  ],
  'payload-': ['projection payloads'],
  'expired-': ['projection sessions', 'projection reveals', 'projection payloads'],
  'deliveries-': ['projection deliveries'],
  'signals-': ['projection signals'],
  'enrichment-': [
    'projection lookups',
    'projection profiles',
    'processor complete-reveals',
    'processor settle-ended-work',
  ],
  'webhooks-': [
    'projection deliveries',
    'projection webhooks',
    'processor complete-reveals',
    'processor queue-webhook-events',
  ],
};

const namesOf = ({ projections, processors }: typeof CONSUMERS): string[] => [
  ...projections.map((name) => `projection ${name}`),
  ...processors.map((name) => `processor ${name}`),
];

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

describe('the deletion of a stream', () => {
  it.each(Object.entries(FOLLOWERS))('%s… is blocked by its followers alone', async (prefix, followers) => {
    const progress = createConsumerProgress(stack.pool, followersOf(prefix));
    const blocking: string[] = [];
    for (const consumer of namesOf(CONSUMERS)) {
      await stack.pool.query('truncate read.projection, work.processor');
      for (const [table, names] of [
        ['read.projection', CONSUMERS.projections],
        ['work.processor', CONSUMERS.processors],
      ] as const) {
        await stack.pool.query(`insert into ${table} (name, position) select unnest($1::text[]), 10`, [
          names,
        ]);
        const stopped = consumer.split(' ')[1];
        const isOfTable = consumer.startsWith(table === 'read.projection' ? 'projection' : 'processor');
        if (isOfTable) await stack.pool.query(`update ${table} set position = 5 where name = $1`, [stopped]);
      }
      if ((await progress.passed()) !== 10n) blocking.push(consumer);
    }
    expect(blocking.toSorted()).toEqual(followers.toSorted());
  });

  it('is blocked by every projection that would be given one of its events', () => {
    for (const { stream, events } of eventCatalogue) {
      const [prefix = ''] = stream.split('<');
      const given = Object.keys(events).map((type) => ({ type }) as RecordedEvent);
      const applying = allProjections.filter((projection) => relevantTo(projection, given).length > 0);
      expect(followersOf(prefix).projections, prefix).toEqual(applying.map(({ name }) => name));
    }
  });

  it('is blocked by every consumer if the catalogue has no events of its kind', () => {
    expect(followersOf('unknown-')).toEqual(CONSUMERS);
  });

  it('is blocked by a projection without a list of types, and by a processor of some of its streams', () => {
    const projections = [{ name: 'all' }, { name: 'other', types: ['billing.RevealBilled.v1'] }];
    const processors = [
      { name: 'every stream', prefixes: [''] },
      { name: 'some of them', prefixes: ['tab-a'] },
      { name: 'others', prefixes: ['reveal-'] },
    ];
    expect(followersOf('tab-', { projections, processors })).toEqual({
      projections: ['all'],
      processors: ['every stream', 'some of them'],
    });
  });
});
