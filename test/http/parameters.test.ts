import { describe, expect, it } from 'vitest';
import { parametersOf } from '../../http/contract/parameters.ts';

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
