/** Addresses and dates in every conceivable spelling. */
import fc from 'fast-check';

const hex = fc.constantFrom(...'0123456789abcdefABCDEF');
const octet = fc.oneof(fc.nat(255), fc.constantFrom(0, 1, 8, 9, 10, 127, 192, 255));
const dotted = fc.array(octet, { minLength: 4, maxLength: 4 }).map((octets) => octets.join('.'));
const group = fc.string({ unit: hex, minLength: 0, maxLength: 5 });
const colons = fc.tuple(
  fc.array(group, { maxLength: 9 }).map((groups) => groups.join(':')),
  fc.constantFrom('', '::', ':', '::ffff:'),
  fc.oneof(fc.constant(''), dotted, group),
);
/** Few enough that requests meet again. */
const wellKnown = fc.oneof(
  fc.nat(60).map((n) => `9.1.1.${n}`),
  fc.nat(20).map((n) => `2a00:1450:4001:${n.toString(16)}::1`),
  fc.nat(20).map((n) => `::ffff:9.1.1.${n}`),
);
const odd = fc.constantFrom(
  ...[
    '8.8.8',
    '010.8.8.8',
    '0x8.0x8.0x8.0x8',
    '134744072',
    '1.1.1.1/32',
    '1.1.1.1:80',
    '[2a00::1]',
    '2a00::1%eth0',
  ],
  ...[
    '10.0.0.1',
    '::1',
    'fe80::1',
    '٨.٨.٨.٨',
    '8.8.8.8\u0000',
    '\u0000',
    '\ud800',
    '8.8.8.8 ',
    'localhost',
    '-1',
  ],
);
export const ipText = fc.oneof(
  { arbitrary: wellKnown, weight: 6 },
  { arbitrary: dotted, weight: 2 },
  { arbitrary: colons.map((parts) => parts.join('')), weight: 2 },
  { arbitrary: odd, weight: 2 },
  { arbitrary: fc.string({ unit: 'binary', maxLength: 60 }), weight: 1 },
);

const year = fc.constantFrom('0000', '0001', '1969', '2024', '2026', '9999', '10000', '-001');
const twoDigits = fc.nat(40).map((n) => String(n).padStart(2, '0'));
export const date = fc.oneof(
  fc.tuple(year, twoDigits, twoDigits).map((parts) => parts.join('-')),
  fc
    .date({ noInvalidDate: true, min: new Date('0001-01-01'), max: new Date('9999-12-31') })
    .map((day) => day.toISOString().slice(0, 10)),
  fc.nat(40).map((days) => new Date(Date.now() + (days - 35) * 86_400_000).toISOString().slice(0, 10)),
  fc.string({ unit: 'binary', maxLength: 12 }),
);
