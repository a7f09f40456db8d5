import { nameIsValid } from './partner.ts';

/** Controls, format characters, private use, and what no font shows: two names could look the same. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** Characters that go with every script. */
const SHARED = /[\p{scx=Zyyy}\p{scx=Zinh}]/u;

/**
 * What one name may consist of: Latin with the scripts of Japanese, Chinese and Korean, or one other script that is in use today
 * (UAX 31, tables 5 and 7).
 */
const SCRIPTS: readonly RegExp[] = [
  ...[/[\p{scx=Latn}\p{scx=Hani}\p{scx=Hira}\p{scx=Kana}]/u, /[\p{scx=Latn}\p{scx=Hani}\p{scx=Bopo}]/u],
  ...[/[\p{scx=Latn}\p{scx=Hani}\p{scx=Hang}]/u],
  ...[/\p{scx=Arab}/u, /\p{scx=Armn}/u, /\p{scx=Beng}/u, /\p{scx=Cyrl}/u, /\p{scx=Deva}/u, /\p{scx=Ethi}/u],
  ...[/\p{scx=Geor}/u, /\p{scx=Grek}/u, /\p{scx=Gujr}/u, /\p{scx=Guru}/u, /\p{scx=Hebr}/u, /\p{scx=Khmr}/u],
  ...[/\p{scx=Knda}/u, /\p{scx=Laoo}/u, /\p{scx=Mlym}/u, /\p{scx=Mymr}/u, /\p{scx=Orya}/u, /\p{scx=Sinh}/u],
  ...[/\p{scx=Taml}/u, /\p{scx=Telu}/u, /\p{scx=Thaa}/u, /\p{scx=Thai}/u, /\p{scx=Tibt}/u],
  ...[/\p{scx=Adlm}/u, /\p{scx=Bali}/u, /\p{scx=Bamu}/u, /\p{scx=Batk}/u, /\p{scx=Cakm}/u, /\p{scx=Cans}/u],
  ...[/\p{scx=Cham}/u, /\p{scx=Cher}/u, /\p{scx=Hmnp}/u, /\p{scx=Java}/u, /\p{scx=Kali}/u, /\p{scx=Lana}/u],
  ...[/\p{scx=Lepc}/u, /\p{scx=Limb}/u, /\p{scx=Lisu}/u, /\p{scx=Mand}/u, /\p{scx=Mong}/u, /\p{scx=Mtei}/u],
  ...[/\p{scx=Newa}/u, /\p{scx=Nkoo}/u, /\p{scx=Olck}/u, /\p{scx=Osge}/u, /\p{scx=Plrd}/u, /\p{scx=Rohg}/u],
  ...[/\p{scx=Saur}/u, /\p{scx=Sund}/u, /\p{scx=Sylo}/u, /\p{scx=Syrc}/u, /\p{scx=Tale}/u, /\p{scx=Talu}/u],
  ...[/\p{scx=Tavt}/u, /\p{scx=Tfng}/u, /\p{scx=Vaii}/u, /\p{scx=Wcho}/u, /\p{scx=Yiii}/u],
];

/**
 * Returns whether a new user may have a name: one of a partner or key that is normalized (NFKC), shows all of its characters, and
 * mixes scripts only as UTS 39 section 5.2 allows ("highly restrictive"), so that it is not mistaken for another one.
 */
export function userNameIsValid(name: string): boolean {
  if (!nameIsValid(name) || name !== name.normalize('NFKC') || INVISIBLE.test(name)) return false;
  const letters = [...name].filter((letter) => !SHARED.test(letter));
  return SCRIPTS.some((script) => letters.every((letter) => script.test(letter)));
}
