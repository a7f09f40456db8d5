/** Longer ones are cut: the names stand at the beginning or are not worth the time. */
const LONGEST = 512;

/** In this order, because browsers also call themselves by the names of those that they descend from. */
const BROWSERS = [
  ['Edge', /Edg(?:e|A|iOS)?\//],
  ['Opera', /OPR\//],
  ['Samsung Internet', /SamsungBrowser\//],
  ['Firefox', /(?:Firefox|FxiOS)\//],
  ['Chrome', /(?:Chrome|CriOS)\//],
  ['Safari', /Safari\//],
] as const;

const SYSTEMS = [
  ['Windows', /Windows/],
  ['iPhone', /iPhone/],
  ['iPad', /iPad/],
  ['Android', /Android/],
  ['ChromeOS', /CrOS/],
  ['macOS', /Mac OS X/],
  ['Linux', /Linux/],
] as const;

const nameIn = (
  text: string,
  names: readonly (readonly [name: string, sign: RegExp])[],
): string | undefined => names.find(([, sign]) => sign.test(text))?.[0];

/** `Firefox on Linux`, as a User-Agent says; null: not known. It is for its owner to recognise, and nothing relies on it. */
export function browserOf(userAgent: string | undefined): string | null {
  const text = (userAgent ?? '').slice(0, LONGEST);
  const [browser, system] = [nameIn(text, BROWSERS), nameIn(text, SYSTEMS)];
  if (browser === undefined) return system === undefined ? null : `A browser on ${system}`;
  return system === undefined ? browser : `${browser} on ${system}`;
}
