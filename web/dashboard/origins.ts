/** What people write in a tracker's form for a website, and the origins that are meant. */

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
const LABELS = /^(\*\.)?[^\s/:?#@]+$/;

/**
 * Proposes the origins that a line of the form means, as the API takes them; empty where none can be guessed. A website without
 * `www.` and with it are two origins, so a bare name means both.
 */
export function originsMeant(line: string): readonly string[] {
  const isWildcard = /^(https:\/\/)?\*\./i.test(line);
  const text = line.replace(/^(https:\/\/)?\*\./i, '');
  const hasScheme = /^https?:\/\//i.test(text);
  if (!hasScheme && /^[a-z][a-z\d+.-]*:\/\//i.test(text)) return [];
  const spelled = hasScheme ? text : `https://${text}`;
  if (!URL.canParse(spelled)) return [];
  const { hostname, host, protocol } = new URL(spelled);
  if (!hostname.includes('.') && !LOOPBACK.test(hostname)) return [];
  if (isWildcard) return [`https://*.${hostname}`];
  const isLocal = LOOPBACK.test(hostname);
  const origin = `${isLocal && (protocol === 'http:' || !hasScheme) ? 'http' : 'https'}://${host}`;
  const isBare = !hasScheme && LABELS.test(text) && hostname.split('.').length === 2 && !isLocal;
  return isBare ? [origin, `https://www.${hostname}`] : [origin];
}

/**
 * The origins of a form's lines: each is taken as it is meant, such as a name without a scheme or a page's address. A line over http stays,
 * to be refused: the website may not be there over https.
 */
export const taken = (lines: readonly string[]): readonly string[] => [
  ...new Set(
    lines.flatMap((line) => {
      const meant = originsMeant(line);
      const isChanged = /^http:/i.test(line) && !meant.every((origin) => origin.startsWith('http:'));
      return meant.length === 0 || isChanged ? [line] : meant;
    }),
  ),
];

/** Each line that is not an origin as it stands, with what it means. */
export const respelled = (
  lines: readonly string[],
): readonly (readonly [line: string, meant: readonly string[]])[] =>
  lines.flatMap((line) => {
    const meant = originsMeant(line);
    return meant.length === 1 && meant[0] === line ? [] : [[line, meant] as const];
  });
