import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const isIn =
  (path: string) =>
  ({ moduleId }: TestSpecification): boolean =>
    moduleId.includes(path);

/**
 * Files that mostly wait or take long, in this order: at the end of a run they would occupy one worker alone.
 */
const FIRST = ['e2e', 'fuzz', 'upgrade', 'bin', 'contract', 'pixel', 'platform', 'lookup'].map((name) =>
  isIn(`/test/${name}/`),
);
const rank = (file: TestSpecification): number => {
  const found = FIRST.findIndex((isOne) => isOne(file));
  return found === -1 ? FIRST.length : found;
};

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    sequence: { sequencer: SlowFirst },
    // A worker loads the modules once for all of its files, a sixth of the run's CPU time. Files leave nothing behind.
    isolate: false,
    // More than the cores of a small machine, because many files mostly wait for processes that they started.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
  },
});
