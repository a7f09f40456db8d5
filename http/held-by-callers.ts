import { Counts } from '../platform/counts.ts';

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
  const ofAddress = new Counts();
  const ofNetwork = new Counts();
  return {
    take: ({ address, network }) => {
      if (ofAddress.of(address) >= perAddress || ofNetwork.of(network) >= perNetwork) return false;
      ofAddress.add(address, 1);
      ofNetwork.add(network, 1);
      return true;
    },
    giveBack: ({ address, network }) => {
      ofAddress.add(address, -1);
      ofNetwork.add(network, -1);
    },
  };
};
