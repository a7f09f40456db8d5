import { z } from 'zod';
import type { Difference, Entry } from './audit-chain.ts';
import { billingStream } from './events.ts';
import { ledgerDecider } from './ledger.ts';

/** The state of a partner's ledger at one moment, for an auditor to keep outside the operator's reach. */
export const anchorSchema = z.strictObject({
  partner_id: z.uuid(),
  /** Time of the anchor, by the clock of the process that made it. */
  made_at: z.iso.datetime(),
  entries: z.int().nonnegative(),
  units: z.int().nonnegative(),
  /** Digest of the last entry; 64 zeros without entries. */
  head_digest: z.string().regex(/^[0-9a-f]{64}$/),
  /** Ed25519, SubjectPublicKeyInfo in base64. */
  public_key: z.base64(),
  /** Signature of `anchorText`, in base64. */
  signature: z.base64(),
});
export type Anchor = z.output<typeof anchorSchema>;
type UnsignedAnchor = Omit<Anchor, 'public_key' | 'signature'>;

/** Returns the text that an anchor's signature covers. `docs/auditing.md` defines it for other programs: it never changes. */
export const anchorText = ({ partner_id, made_at, entries, units, head_digest }: UnsignedAnchor): string =>
  ['doorplate anchor 1', partner_id, made_at, entries, units, head_digest].join('\n');

/**
 * Describes a ledger as an anchor does.
 * @param entries all entries of the ledger, from a chain without differences
 * @param made_at ISO 8601, UTC
 */
export const anchorOf = (partner_id: string, entries: readonly Entry[], made_at: string): UnsignedAnchor => ({
  partner_id,
  made_at,
  entries: entries.length,
  units: entries.reduce((sum, { units }) => sum + units, 0),
  head_digest: entries.at(-1)?.digest ?? ledgerDecider.initial.digest,
});

/** Checks that the chain still has a digest noted earlier. */
export const checkDigest = (partnerId: string, entries: readonly Entry[], digest: string): Difference[] =>
  entries.some((entry) => entry.digest === digest)
    ? []
    : [differenceOf('anchor_missing', partnerId, null, `no entry has the digest ${digest}`)];

/**
 * Checks that the ledger still begins with what each anchor describes, and that each anchor is signed.
 * @param isSigned checks a signature with the service's key for anchors
 */
export const checkAnchors = (
  partnerId: string,
  entries: readonly Entry[],
  anchors: readonly Anchor[],
  isSigned: (text: string, anchor: Anchor) => boolean,
): Difference[] => {
  const digests = new Map(entries.map(({ number, digest }) => [number, digest]));
  return anchors.flatMap((anchor): Difference[] => {
    const { made_at, entries: count, head_digest } = anchor;
    if (!isSigned(anchorText(anchor), anchor)) {
      const detail = `the anchor of ${made_at} was changed, or another key signed it: ${anchor.public_key}`;
      return [differenceOf('anchor_signature', partnerId, null, detail)];
    }
    if (count === 0 || digests.get(count - 1) === head_digest) return [];
    const has = digests.get(count - 1) ?? 'is not there';
    const detail = `entry ${count - 1} had ${head_digest} at ${made_at}, now ${has}`;
    return [differenceOf('anchor_missing', partnerId, count - 1, detail)];
  });
};

const differenceOf = (
  kind: 'anchor_missing' | 'anchor_signature',
  partnerId: string,
  revision: number | null,
  detail: string,
): Difference => ({ kind, stream: billingStream(partnerId), revision, reveal_id: null, detail });
