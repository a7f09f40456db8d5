/** Where a caller is. */
export interface CallerNetworks {
  /** Its IPv4 address or IPv6 /64. */
  readonly address: string;
  /** The IPv4 /24 or IPv6 /48 around it, of which one caller may have every address. */
  readonly network: string;
}

/** What callers may hold at once, such as connections. */
export interface CallerLimits {
  readonly perAddress: number;
  readonly perNetwork: number;
}

export interface HeldByCallers {
  /** @returns whether the caller may hold one more */
  take(caller: CallerNetworks): boolean;
  giveBack(caller: CallerNetworks): void;
}

/** Counts what callers hold, by address and by network, so that addresses of one network leave room for others. */
export const createHeldByCallers = ({ perAddress, perNetwork }: CallerLimits): HeldByCallers => {
  const ofAddress = new Map<string, number>();
  const ofNetwork = new Map<string, number>();
  const decrease = (counts: Map<string, number>, name: string): void => {
    const left = (counts.get(name) ?? 1) - 1;
    if (left === 0) counts.delete(name);
    else counts.set(name, left);
  };
  return {
    take: ({ address, network }) => {
      const ofThisAddress = ofAddress.get(address) ?? 0;
      const ofThisNetwork = ofNetwork.get(network) ?? 0;
      if (ofThisAddress >= perAddress || ofThisNetwork >= perNetwork) return false;
      ofAddress.set(address, ofThisAddress + 1);
      ofNetwork.set(network, ofThisNetwork + 1);
      return true;
    },
    giveBack: ({ address, network }) => {
      decrease(ofAddress, address);
      decrease(ofNetwork, network);
    },
  };
};
