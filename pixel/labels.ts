/** The labels of a tag's `data-custom` (spec, "CustomParameters"): flat, few and short. */
export type Labels = Readonly<Record<string, string | number | boolean | null>>;

const MOST = 32;
const MOST_BYTES = 2_048;
const LONGEST_STRING = 512;
const NAME = /^[A-Za-z][\w.-]{0,63}$/;
const RESERVED = /^(constructor|prototype)$/;
/** With the flag `u`, which takes a pair of surrogates as the one character that it stands for. */
const REFUSED = /[\0\ud800-\udfff]/u;

/** What the attribute says; nothing is no labels. null: invalid. */
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
  // JSON has numbers that are none here: 1e999.
  return value === null || typeof value === 'boolean' || Number.isFinite(value);
};
