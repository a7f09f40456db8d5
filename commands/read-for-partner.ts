/** Reads streams for a request of the partner's, of which a limited number runs at a time. @throws StoreBusy */
export type ReadForPartner = <T>(partnerId: string, read: () => Promise<T>) => Promise<T>;
