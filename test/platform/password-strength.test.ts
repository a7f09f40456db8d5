import { expect, test } from 'vitest';
import { weaknessOf } from '../../platform/crypto/password-strength.ts';

test.each([
  ['qwerty123456', 'common'],
  ['1qaz2wsx3edc', 'common'],
  ['QWERTY123456', 'common'],
  ['password123456!', 'common'],
  ['passwordpassword', 'common'],
  ['123456123456', 'common'],
  ['aaaaaaaaaaaaaaaa', 'repeated'],
  ['\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9', 'repeated'],
  ['my doorplate login', 'name'],
  ['Anna.Schmidt-2026', 'name'],
  ['annaschmidt2026', 'name'],
  ['Door-Plate 2026', 'name'],
  ['aaaaaaaaaaaa1', 'repeated'],
  ['1111111111112', 'repeated'],
  ['abcabcabcabc', 'repeated'],
  ['123123123123', 'repeated'],
  ['password password', 'common'],
  ['Passw0rd!Passw0rd!', 'common'],
  ['three wise words', null],
  ['582093716458', null],
  ['correct horse battery staple', null],
  ['abcd-efgh-jkmn-pqrs', null],
])('the password %j is weak as %s', (password, weakness) => {
  expect(weaknessOf(password, 'anna.schmidt')).toBe(weakness);
});

test.each([
  ['jo', 'jojojojojojo', 'name'],
  ['jo', 'jo-jo-jo-jo-2026', 'name'],
  ['jo', 'a major jolly joke', null],
  ['anna@example.com', 'anna-is-here-2026', 'name'],
  ['...', 'three wise words', null],
])('for the user %j the password %j is weak as %s', (user, password, weakness) => {
  expect(weaknessOf(password, user)).toBe(weakness);
});
