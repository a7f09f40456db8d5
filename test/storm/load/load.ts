/** The shared state of a storm's clients. */
import type { Client } from '../client.ts';
import type { Partner } from '../partners.ts';
import type { Random } from '../random.ts';
import type { Violations } from '../violations.ts';

export interface Load {
  readonly client: Client;
  readonly partners: readonly Partner[];
  readonly random: Random;
  readonly violations: Violations;
  /** A visitor's or looked-up address, usually a new one. */
  nextIp(): string;
}

/** Creates addresses of which some repeat. */
export const createAddresses = (random: Random): (() => string) => {
  const firstByte = 20 + Math.floor(random.next() * 60);
  let serial = Math.floor(random.next() * 2 ** 23);
  return () => {
    serial = (serial + 1) % 2 ** 24;
    if (random.chance(0.2)) return `${firstByte}.0.0.${serial % 50}`;
    return `${firstByte}.${serial >> 16}.${(serial >> 8) & 255}.${serial & 255}`;
  };
};
