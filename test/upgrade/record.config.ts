import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/upgrade/record.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 120_000,
  },
});
