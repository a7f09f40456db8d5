import { describe, expect, it, vi } from 'vitest';
import { parametersOf } from '../../http/contract/parameters.ts';
import type { ApiRequest } from '../../http/contract/route.ts';
import { staticAnswers } from '../../http/contract/static-route.ts';
import { bearerToken } from '../../http/server/admission.ts';

const KEY = `dp_${'k'.repeat(43)}`;

it('a key that also stands in the URL is none', () => {
  expect(bearerToken(['Authorization', `Bearer ${KEY}`], 'a=1')).toBe(KEY);
  expect(bearerToken(['Authorization', `Bearer ${KEY}`], `a=${KEY}&b=1`)).toBeNull();
});

it('text too long for a key is not searched for in the URL, which takes quadratic time', () => {
  const includes = vi.spyOn(String.prototype, 'includes');
  const token = `${'a'.repeat(150)}b${'a'.repeat(2_850)}`;
  expect(bearerToken(['Authorization', `Bearer ${token}`], 'a'.repeat(12_900))).toBeNull();
  const searched = includes.mock.calls.length;
  includes.mockRestore();
  expect(searched).toBe(0);
});

describe('the parameters of a query or form', () => {
  it('are those of URLSearchParams', () => {
    for (const text of [
      '',
      'a=1',
      '?a=1',
      '&?a=1',
      '??a',
      'a=1&b=%C3%A9+x&a=2',
      '&&a&=&&b=',
      '%E9=1',
      'a=1&',
      '+a+=%2B+\u00e9+\u{1f600}&+',
    ])
      expect([...parametersOf(text)]).toEqual([...new URLSearchParams(text)]);
  });

  it('are at most a hundred, because each may cost an exception', () => {
    expect([...parametersOf('%E9=%E9&'.repeat(8_000))]).toHaveLength(100);
    expect([...parametersOf(`${'&'.repeat(8_000)}a=1`)]).toEqual([['a', '1']]);
  });
});

it('answers every caller with the same bytes, not with a copy of them for each', () => {
  const answers = staticAnswers({ body: 'a text', headers: {} }, 60);
  const request = { header: () => undefined } as unknown as ApiRequest;
  const [one, two] = [answers(request), answers(request)];
  expect(one.body).toEqual(Buffer.from('a text'));
  expect(one.body).toBe(two.body);
});
