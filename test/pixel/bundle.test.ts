import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { buildPixel, PIXEL_FILE } from '../../pixel/build.ts';

const committed = readFileSync(PIXEL_FILE);

it('the committed pixel is built from its sources; otherwise run: npm run build:pixel', async () => {
  expect(Buffer.from(await buildPixel()).toString()).toBe(committed.toString());
});

/** Decisions, "Pixel". */
it('the pixel has at most 2,000 bytes after gzip', () => {
  expect(gzipSync(committed, { level: 9 }).length).toBeLessThanOrEqual(2_000);
});
