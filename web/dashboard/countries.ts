/** Countries by their codes (ISO 3166-1 alpha-2) and by the names that people use. */
import { searchKey } from '../../domain/kernel/text.ts';

const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
const shortNames = new Intl.DisplayNames('en', { type: 'region', style: 'short', fallback: 'none' });

const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
/** Codes of ICU that are no country. */
const OTHERS = new Set(['EU', 'EZ', 'QO', 'UN', 'XA', 'XB', 'ZZ']);

/** Codes of today: ICU also knows names of countries that have ended. */
const CODES: readonly string[] = LETTERS.flatMap((first) => LETTERS.map((second) => first + second)).filter(
  (code) =>
    !OTHERS.has(code) && names.of(code) !== undefined && new Intl.Locale(`und-${code}`).region === code,
);

const key = (name: string): string =>
  searchKey(name)
    .normalize('NFD')
    .replaceAll(/[^a-z]/g, '');

const BY_NAME: ReadonlyMap<string, string> = new Map([
  ...CODES.flatMap((code) =>
    [code, names.of(code) ?? '', shortNames.of(code) ?? ''].map((name) => [key(name), code] as const),
  ),
  ['usa', 'US'],
  ['greatbritain', 'GB'],
  ['turkey', 'TR'],
  ['czechrepublic', 'CZ'],
  ['ivorycoast', 'CI'],
]);

/** Returns the code of a country that is named by its code or its name, in any case; null: no country is. */
export const countryCode = (text: string): string | null => BY_NAME.get(key(text)) ?? null;

/** Returns the name of a country, by the code that a visitor's address or a provider gave; null: not known. */
export const countryName = (code: string | null): string =>
  code === null ? 'unknown' : /^[A-Z]{2}$/.test(code) ? (names.of(code) ?? code) : code;
