import { describe } from 'vitest';
import { appends } from './suite/appends.ts';
import { contents } from './suite/contents.ts';
import { suiteContext, type TestedServer } from './suite/context.ts';
import { faults } from './suite/faults.ts';
import { follows } from './suite/follows.ts';
import { longStreams } from './suite/long-streams.ts';
import { reads } from './suite/reads.ts';
import { retention } from './suite/retention.ts';
import { teams } from './suite/teams.ts';

/**
 * The contract of every event store (`event-store/port.ts`). It tolerates a log with other writers, so every test
 * uses its own streams.
 * @param start starts the server under test once, or connects to a running one
 */
export const describeEventStore = (name: string, start: () => Promise<TestedServer>): void => {
  describe(`the event store contract on ${name}`, () => {
    const context = suiteContext(start);
    appends(context);
    reads(context);
    follows(context);
    retention(context);
    longStreams(context);
    contents(context);
    teams(context);
    faults(context);
  });
};
