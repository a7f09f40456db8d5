import ipaddr from 'ipaddr.js';

export type MmdbValue = string | number | boolean | { readonly [name: string]: MmdbValue };

const MARKER = Buffer.from('abcdef4d61784d696e642e636f6d', 'hex');
const SEPARATOR = Buffer.alloc(16);
const EMPTY = -1;

const STRING = 2;
const DOUBLE = 3;
const UINT16 = 5;
const UINT32 = 6;
const MAP = 7;
const ARRAY = 11;
const BOOLEAN = 14;

/** The control bytes of a value: its type and its size. */
const control = (type: number, size: number): Buffer => {
  const length = size < 29 ? size : size < 285 ? 29 : 30;
  const first = type <= 7 ? [(type << 5) | length] : [length, type - 7];
  const rest = size < 29 ? [] : size < 285 ? [size - 29] : [(size - 285) >> 8, (size - 285) & 255];
  return Buffer.from([...first, ...rest]);
};

const unsigned = (type: number, value: number): Buffer => {
  const bytes = type === UINT16 ? Buffer.alloc(2) : Buffer.alloc(4);
  bytes.writeUIntBE(value, 0, bytes.length);
  return Buffer.concat([control(type, bytes.length), bytes]);
};

const double = (value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return Buffer.concat([control(DOUBLE, 8), bytes]);
};

const encode = (value: MmdbValue): Buffer => {
  if (typeof value === 'boolean') return control(BOOLEAN, value ? 1 : 0);
  if (typeof value === 'number') {
    return Number.isInteger(value) && value >= 0 ? unsigned(UINT32, value) : double(value);
  }
  if (typeof value === 'string') {
    const bytes = Buffer.from(value);
    return Buffer.concat([control(STRING, bytes.length), bytes]);
  }
  return encodeMap(Object.entries(value).map(([name, one]) => [name, encode(one)]));
};

const encodeMap = (entries: readonly (readonly [string, Buffer])[]): Buffer =>
  Buffer.concat([control(MAP, entries.length), ...entries.flatMap(([name, bytes]) => [encode(name), bytes])]);

const metadata = (type: string, nodes: number): Buffer =>
  encodeMap([
    ['binary_format_major_version', unsigned(UINT16, 2)],
    ['binary_format_minor_version', unsigned(UINT16, 0)],
    ['build_epoch', unsigned(UINT32, 1_700_000_000)],
    ['database_type', encode(type)],
    ['description', encodeMap([['en', encode('made by a test')]])],
    ['ip_version', unsigned(UINT16, 6)],
    ['languages', Buffer.concat([control(ARRAY, 1), encode('en')])],
    ['node_count', unsigned(UINT32, nodes)],
    ['record_size', unsigned(UINT16, 32)],
  ]);

/** IPv4 blocks are the first of the IPv6 tree. */
const bitsOf = (cidr: string): number[] => {
  const [address, length] = ipaddr.parseCIDR(cidr);
  const bytes = [...(address.kind() === 'ipv4' ? Array<number>(12).fill(0) : []), ...address.toByteArray()];
  const bits = bytes.flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte >> (7 - bit)) & 1));
  return bits.slice(0, address.kind() === 'ipv4' ? 96 + length : length);
};

/** Makes an MMDB file (format 2.0) of disjoint blocks. Source: the specification of the MaxMind DB file format. */
export const makeMmdb = (type: string, blocks: Readonly<Record<string, MmdbValue>>): Buffer => {
  const nodes: [number, number][] = [[EMPTY, EMPTY]];
  const data: Buffer[] = [];
  const leaves: { node: number; side: number; offset: number }[] = [];
  let offset = 0;
  for (const [cidr, value] of Object.entries(blocks)) {
    const bits = bitsOf(cidr);
    let node = 0;
    for (const side of bits.slice(0, -1)) {
      let next = nodes[node]?.[side] ?? EMPTY;
      if (next === EMPTY) {
        next = nodes.push([EMPTY, EMPTY]) - 1;
        (nodes[node] as [number, number])[side] = next;
      }
      node = next;
    }
    leaves.push({ node, side: bits.at(-1) ?? 0, offset });
    const bytes = encode(value);
    data.push(bytes);
    offset += bytes.length;
  }
  const tree = Buffer.alloc(nodes.length * 8);
  nodes.forEach((sides, index) => {
    sides.forEach((next, side) => {
      tree.writeUInt32BE(next === EMPTY ? nodes.length : next, index * 8 + side * 4);
    });
  });
  for (const leaf of leaves) {
    tree.writeUInt32BE(nodes.length + SEPARATOR.length + leaf.offset, leaf.node * 8 + leaf.side * 4);
  }
  return Buffer.concat([tree, SEPARATOR, ...data, MARKER, metadata(type, nodes.length)]);
};
