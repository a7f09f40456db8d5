// Checks a ledger without any of the project's code, and prints its units by month (docs/auditing.md):
//   doorplate audit billing --partner P --entries | node docs/examples/verify-ledger.mjs PARTNER_ID [digest | file of anchors]
import { createHash, createPublicKey, verify } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , partner, noted] = process.argv;
const months = new Map();
const digests = [];
const reveals = new Set();
let last = { number: -1, digest: '0'.repeat(64), position: -1 };

const fault = (e) => {
  if (e.number !== last.number + 1) return 'number_gap';
  if (!(e.units === 0 || e.units === 1) || !/^\d+$/.test(e.position)) return 'unreadable_entry';
  if (e.previous !== last.digest) return 'previous_mismatch';
  const who = [e.partner_id, e.reveal_id, e.tracker_id, e.key_id ?? '', e.user_id ?? ''];
  const text = [e.number, ...who, e.completed_at, e.units, e.position, e.previous].join('\n');
  const digest = createHash('sha256').update(text, 'utf8').digest('hex');
  if (digest !== e.digest || e.partner_id !== partner) return 'digest_mismatch';
  if (BigInt(e.position) <= BigInt(last.position)) return 'order';
  return reveals.has(e.reveal_id) ? 'duplicate_reveal' : null;
};
const stop = (text) => {
  process.stdout.write(`${text}\n`);
  process.exit(1);
};
const checkAnchor = (a) => {
  const text = ['doorplate anchor 1', a.partner_id, a.made_at, a.entries, a.units, a.head_digest].join('\n');
  const key = createPublicKey({ key: Buffer.from(a.public_key, 'base64'), format: 'der', type: 'spki' });
  if (!verify(null, Buffer.from(text), key, Buffer.from(a.signature, 'base64'))) {
    stop(`anchor_signature: the anchor of ${a.made_at} was changed`);
  }
  if (a.entries > 0 && digests[a.entries - 1] !== a.head_digest) {
    stop(`anchor_missing: entry ${a.entries - 1} had ${a.head_digest} at ${a.made_at}`);
  }
  process.stdout.write(`anchor of ${a.made_at} fits, signed with ${a.public_key}\n`);
};

for await (const line of createInterface({ input: process.stdin })) {
  const entry = JSON.parse(line);
  const found = fault(entry);
  if (found) stop(`${found} at entry ${entry.number}`);
  const month = entry.completed_at.slice(0, 7);
  months.set(month, (months.get(month) ?? 0) + entry.units);
  digests.push(entry.digest);
  reveals.add(entry.reveal_id);
  last = entry;
}
if (noted && existsSync(noted)) {
  const anchors = readFileSync(noted, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const own = anchors.filter((anchor) => anchor.partner_id === partner);
  if (own.length === 0) stop(`anchor_missing: the file has no anchor of partner ${partner}`);
  own.forEach(checkAnchor);
} else if (noted && !digests.includes(noted)) stop(`anchor_missing: no entry has the digest ${noted}`);
for (const [month, units] of [...months].sort()) process.stdout.write(`${month} ${units}\n`);
process.stdout.write('OK\n');
