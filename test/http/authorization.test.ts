import { expect, it, vi } from 'vitest';
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
