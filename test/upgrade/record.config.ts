import { defineConfig } from 'vitest/config';

/** For `record.ts`, which is no test. */
export default defineConfig({
  test: {
    include: ['test/upgrade/record.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 120_000,
  },
});
