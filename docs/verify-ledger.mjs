// Checks a ledger without any of the project's code, and prints its units by month (docs/auditing.md):
//   doorplate audit billing --partner P --entries | node docs/verify-ledger.mjs PARTNER_ID [digest noted earlier]
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';

const [, , partner, anchor] = process.argv;
const months = new Map();
const digests = new Set();
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

for await (const line of createInterface({ input: process.stdin })) {
  const entry = JSON.parse(line);
  const found = fault(entry);
  if (found) stop(`${found} at entry ${entry.number}`);
  const month = entry.completed_at.slice(0, 7);
  months.set(month, (months.get(month) ?? 0) + entry.units);
  digests.add(entry.digest);
  reveals.add(entry.reveal_id);
  last = entry;
}
if (anchor && !digests.has(anchor)) stop(`anchor_missing: no entry has the digest ${anchor}`);
for (const [month, units] of [...months].sort()) process.stdout.write(`${month} ${units}\n`);
process.stdout.write('OK\n');
