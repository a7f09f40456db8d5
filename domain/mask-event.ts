import { eventPrivacy, metadataPrivacy, type Sight } from './event-privacy.ts';

const MASKED = '(masked)';
const SECRET = '(secret)';

interface Rule {
  readonly path: readonly string[];
  readonly sight: Sight;
}

/** Parses the rules of an event; none for an unknown type. */
export const rulesOf = (fields: Readonly<Partial<Record<Sight, string>>> | undefined): Rule[] =>
  Object.entries(fields ?? {}).flatMap(([sight, names]) =>
    names.split(' ').map((name) => ({ path: name.split('.'), sight: sight as Sight })),
  );

/** Selects the rules below `name`. */
export const into = (rules: readonly Rule[], name: string): Rule[] =>
  rules
    .filter(({ path: [first] }) => first === name || first === '*')
    .map(({ path, sight }) => ({ path: path.slice(1), sight }));

/** Masks an event's data and metadata. Personal fields are shown if `unmasked`; secret and unlisted ones never are. */
export const maskEvent = (
  { type, data, metadata }: { readonly type: string; readonly data: object; readonly metadata: object },
  unmasked: boolean,
): { readonly data: unknown; readonly metadata: unknown } => {
  const known = Object.hasOwn(eventPrivacy, type) ? eventPrivacy[type] : undefined;
  return {
    data: mask(data, rulesOf(known), unmasked),
    metadata: mask(metadata, rulesOf(metadataPrivacy), unmasked),
  };
};

const mask = (value: unknown, rules: readonly Rule[], unmasked: boolean): unknown => {
  if (value === null) return null;
  const own = rules.find(({ path }) => path.length === 0);
  if (own?.sight === 'personal') return unmasked ? value : MASKED;
  if (rules.length === 0 || own?.sight === 'secret') return SECRET;
  if (Array.isArray(value)) return value.map((item) => maskItem(item, rules, unmasked));
  if (typeof value !== 'object') return own ? value : SECRET;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, mask(inner, into(rules, name), unmasked)]),
  );
};

const maskItem = (item: unknown, rules: readonly Rule[], unmasked: boolean): unknown =>
  Array.isArray(item)
    ? item.map((inner, index) => mask(inner, into(rules, String(index)), unmasked))
    : mask(item, rules, unmasked);
