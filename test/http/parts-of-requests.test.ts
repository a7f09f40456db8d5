import { expect, it } from 'vitest';
import { bearerToken } from '../../http/server/admission.ts';

const KEY = `dp_${'k'.repeat(43)}`;

it('a key that also stands in the URL is none', () => {
  expect(bearerToken(['Authorization', `Bearer ${KEY}`], 'a=1')).toBe(KEY);
  expect(bearerToken(['Authorization', `Bearer ${KEY}`], `a=${KEY}&b=1`)).toBeNull();
});
