import { describe } from 'vitest';
import { appends } from './suite/appends.ts';
import { contents } from './suite/contents.ts';
import { suiteContext, type TestedServer } from './suite/context.ts';
import { faults } from './suite/faults.ts';
import { follows } from './suite/follows.ts';
import { reads } from './suite/reads.ts';
import { retention } from './suite/retention.ts';

/**
 * The one contract that every event store is held to (`event-store/port.ts`). It takes a log that others
 * have written to and still write to: every test has streams of its own.
 *
 * @param start brings up the server to test, once, or reaches one that runs
 */
export const describeEventStore = (name: string, start: () => Promise<TestedServer>): void => {
  describe(`the event store contract on ${name}`, () => {
    const context = suiteContext(start);
    appends(context);
    reads(context);
    follows(context);
    retention(context);
    contents(context);
    faults(context);
  });
};
