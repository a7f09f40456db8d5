import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const isIn =
  (file: string) =>
  ({ moduleId }: TestSpecification): boolean =>
    moduleId.endsWith(file);
const isStorm = isIn('/test/storm/storm.test.ts');
const isUpgradeStorm = isIn('/test/storm/upgrades/upgrade-storm.test.ts');

/**
 * Starts the storm first: it mostly waits, and would prolong the whole run if it came last. So would the upgrade storm,
 * which comes in the middle: the two would take each other's time.
 */
class StormFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const others = sorted.filter((file) => !isStorm(file) && !isUpgradeStorm(file));
    const half = Math.floor(others.length / 2);
    return [
      ...sorted.filter(isStorm),
      ...others.slice(0, half),
      ...sorted.filter(isUpgradeStorm),
      ...others.slice(half),
    ];
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
