/** Estimates an event's bytes, accurately enough to limit memory. */
export const approximateBytes = ({ data, metadata }: { data: unknown; metadata: unknown }): number =>
  200 + JSON.stringify([data, metadata]).length;
