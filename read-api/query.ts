/** The parameters of a query by name; null: it has another than these, or one of them twice. */
export function namedParameters<Name extends string>(
  query: string,
  names: readonly Name[],
): Readonly<Partial<Record<Name, string>>> | null {
  const given = [...new URLSearchParams(query)];
  const isKnown = given.every(([name]) => (names as readonly string[]).includes(name));
  const isRepeated = new Set(given.map(([name]) => name)).size < given.length;
  return isKnown && !isRepeated ? (Object.fromEntries(given) as Partial<Record<Name, string>>) : null;
}
