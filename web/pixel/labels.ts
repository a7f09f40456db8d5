/** The labels of a tag's `data-custom` (contract, Pixel 2): flat, few and short. */
export type Labels = Readonly<Record<string, string | number | boolean | null>>;

const MOST = 32;
const MOST_BYTES = 2_048;
const LONGEST_STRING = 512;
const NAME = /^[A-Za-z][\w.-]{0,63}$/;
const RESERVED = /^(constructor|prototype)$/;
/** The flag `u` matches a surrogate pair as one character. */
const REFUSED = /[\0\ud800-\udfff]/u;

/** Parses the attribute; an empty one has no labels. null: invalid. */
export const parseLabels = (text: string): Labels | null => {
  try {
    const labels: unknown = text.trim() === '' ? {} : JSON.parse(text);
    return isLabels(labels) ? labels : null;
  } catch {
    return null;
  }
};

const isLabels = (value: unknown): value is Labels => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const labels = Object.entries(value);
  return (
    labels.length <= MOST &&
    labels.every(([name, label]) => NAME.test(name) && !RESERVED.test(name) && isLabel(label)) &&
    new TextEncoder().encode(JSON.stringify(value)).length <= MOST_BYTES
  );
};

const isLabel = (value: unknown): boolean => {
  if (typeof value === 'string') return [...value].length <= LONGEST_STRING && !REFUSED.test(value);
  // JSON has numbers outside the range of a double: 1e999.
  return value === null || typeof value === 'boolean' || Number.isFinite(value);
};
