/** About how many bytes an event holds: enough to bound memory by. */
export const approximateBytes = ({ data, metadata }: { data: unknown; metadata: unknown }): number =>
  200 + sizeOf(data) + sizeOf(metadata);

const sizeOf = (value: unknown): number => {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 8;
  let size = 16;
  for (const key in value) size += key.length + sizeOf((value as Record<string, unknown>)[key]);
  return size;
};
