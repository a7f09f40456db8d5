/** About how many bytes an event holds: enough to bound memory by. */
export const approximateBytes = ({ data, metadata }: { data: unknown; metadata: unknown }): number =>
  200 + JSON.stringify([data, metadata]).length;
