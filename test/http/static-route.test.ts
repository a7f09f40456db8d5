import { expect, it } from 'vitest';
import type { ApiRequest } from '../../http/contract/route.ts';
import { staticAnswers } from '../../http/contract/static-route.ts';

it('answers every caller with the same bytes, not with a copy of them for each', () => {
  const answers = staticAnswers({ body: 'a text', headers: {} }, 60);
  const request = { header: () => undefined } as unknown as ApiRequest;
  const [one, two] = [answers(request), answers(request)];
  expect(one.body).toEqual(Buffer.from('a text'));
  expect(one.body).toBe(two.body);
});
