import { expect, it } from 'vitest';
import type { PartnerRequest } from '../../http/contract/route.ts';
import { type TrackerRouteDeps, trackerRoutes } from '../../write-api/trackers/trackers.ts';

it('a list of origins is refused at its first fault, however many follow', async () => {
  let reads = 0;
  const origins = new Proxy(Array(8_000).fill(1), {
    get: (list, name) => {
      if (/^\d+$/.test(String(name))) reads += 1;
      return Reflect.get(list, name);
    },
  });
  const [create] = trackerRoutes({} as TrackerRouteDeps);
  const request = { id: 'an-id', query: '', body: { name: 'a site', origins } } as unknown as PartnerRequest;
  expect(await create?.handle(request)).toMatchObject({ status: 400, code: 'invalid_origin' });
  expect(reads).toBe(1);
});
