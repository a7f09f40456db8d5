import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { buildPixel, PIXEL_FILE } from '../../web/pixel/build.ts';
import { parseCapture } from '../../write-api/sessions/capture-request.ts';

const committed = readFileSync(PIXEL_FILE);

it('the committed pixel is built from its sources; otherwise run: npm run build:pixel', async () => {
  expect(Buffer.from(await buildPixel()).toString()).toBe(committed.toString());
});

/** Decisions, "Pixel". */
it('the pixel has at most 2,000 bytes after gzip', () => {
  expect(gzipSync(committed, { level: 9 }).length).toBeLessThanOrEqual(2_000);
});

/**
 * What processes of the release before accept, which a newer script reaches during a rolling upgrade (docs/pixel.md). Add a name
 * only after a release that accepts it.
 */
const ACCEPTED_BEFORE = ['tracker_id', 'token', 'visit_id', 'custom'];

it('the pixel sends nothing that the release before refuses, so that a rolling upgrade loses no visit', () => {
  const sent: string[] = [];
  const currentScript = {
    src: 'https://doorplate.example/tracking/a.js?tracker_id=2b6d6a5e-7d0f-4f0e-8a5a-3b1e0f1c2d3e',
    dataset: { custom: '{"plan":"pro"}' },
  };
  const page = {
    TextEncoder,
    crypto,
    performance: { getEntriesByType: () => [] },
    sessionStorage: { getItem: () => null, setItem: () => undefined },
    history: { pushState: () => undefined },
    navigator: {},
    opener: null,
    addEventListener: () => undefined,
    setTimeout,
    Document: { prototype: { currentScript } },
    document: { visibilityState: 'visible', currentScript },
    fetch: async (_collector: string, { body }: { body: string }) => {
      sent.push(body);
      return { status: 204 };
    },
  };
  runInNewContext(committed.toString(), Object.assign(page, { window: page }));
  expect(sent).toHaveLength(1);
  const body = JSON.parse(sent[0] ?? '');
  expect(Object.keys(body).filter((name) => !ACCEPTED_BEFORE.includes(name))).toEqual([]);
  expect(parseCapture(body)).toMatchObject({ custom: { plan: 'pro' } });
  expect(parseCapture({ ...body, added_later: 1 })).toBe('invalid_capture');
});
