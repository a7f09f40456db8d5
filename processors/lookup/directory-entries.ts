import ipaddr from 'ipaddr.js';
import { parseAddress } from '../../domain/kernel/address.ts';
import type { ProviderRecord } from '../../domain/lookup/answers.ts';
import { parseProviderRecord } from './provider-record.ts';

/** Finds the record of the longest matching prefix. */
export interface Directory {
  find(ip: string): ProviderRecord | null;
}

type Family = 'ipv4' | 'ipv6';

/** Returns the address's first `bits` bits as a map key. */
const prefixKey = (bytes: readonly number[], bits: number): string => {
  const whole = bits >> 3;
  const kept = bytes.slice(0, whole);
  const rest = bits & 7;
  if (rest > 0) kept.push((bytes[whole] ?? 0) & (0xff << (8 - rest)));
  return String.fromCharCode(...kept);
};

const parseBlock = (cidr: string): { family: Family; bytes: number[]; bits: number } => {
  const [text = '', length = ''] = cidr.split('/');
  const address = parseAddress(text);
  const bits = /^\d{1,3}$/.test(length) ? Number(length) : Number.NaN;
  if (address === null || !(bits <= (address.kind() === 'ipv4' ? 32 : 128))) {
    throw new Error(`'${cidr}' is no CIDR block`);
  }
  return { family: address.kind(), bytes: address.toByteArray(), bits };
};

/**
 * Parses JSON Lines of `{cidr, match_type, network, company, fresh_for_days}`.
 * @throws Error that names the first wrong line
 */
export const parseDirectory = (text: string): Directory => {
  const byLength: Record<Family, Map<number, Map<string, ProviderRecord>>> = {
    ipv4: new Map(),
    ipv6: new Map(),
  };
  text.split('\n').forEach((line, index) => {
    if (line.trim() === '') return;
    try {
      const { cidr, ...record } = JSON.parse(line) as { cidr: unknown };
      const { family, bytes, bits } = parseBlock(String(cidr));
      const blocks = byLength[family].get(bits) ?? new Map<string, ProviderRecord>();
      blocks.set(prefixKey(bytes, bits), parseProviderRecord(record));
      byLength[family].set(bits, blocks);
    } catch (error) {
      throw new Error(`line ${index + 1}: ${(error as Error).message}`);
    }
  });
  const longestFirst = (family: Family) => [...byLength[family]].sort(([a], [b]) => b - a);
  const ordered: Record<Family, [number, Map<string, ProviderRecord>][]> = {
    ipv4: longestFirst('ipv4'),
    ipv6: longestFirst('ipv6'),
  };
  return {
    find: (ip) => {
      const address = ipaddr.parse(ip);
      const bytes = address.toByteArray();
      for (const [bits, blocks] of ordered[address.kind()]) {
        const record = blocks.get(prefixKey(bytes, bits));
        if (record) return record;
      }
      return null;
    },
  };
};
