import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const isStorm = ({ moduleId }: TestSpecification): boolean => moduleId.endsWith('/test/storm/storm.test.ts');

/** Starts the storm first: it mostly waits, and would prolong the whole run if it came last. */
class StormFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [...sorted.filter(isStorm), ...sorted.filter((file) => !isStorm(file))];
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    sequence: { sequencer: StormFirst },
    // The tests' own PostgreSQL needs a share of the cores too.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
  },
});
