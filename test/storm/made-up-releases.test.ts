import { expect, test } from 'vitest';
import { makeReleases } from './upgrades/releases.ts';

test('the made-up releases of the upgrade storm still fit this tree', () => {
  const releases = makeReleases();
  releases.remove();
  expect(releases.writing.folder).not.toBe(releases.reading.folder);
});
