import { describe, expect, it } from 'vitest';
import { parametersOf } from '../../http/contract/parameters.ts';
import { bearerToken } from '../../http/server/admission.ts';

const KEY = `dp_${'k'.repeat(43)}`;

it('a key that also stands in the URL is none', () => {
  expect(bearerToken(['Authorization', `Bearer ${KEY}`], 'a=1')).toBe(KEY);
  expect(bearerToken(['Authorization', `Bearer ${KEY}`], `a=${KEY}&b=1`)).toBeNull();
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
});
