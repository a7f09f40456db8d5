import type pg from 'pg';
import { readLedger } from '../commands/billing/read-for-audit.ts';
import { type Anchor, anchorOf, anchorText } from '../domain/billing/anchor.ts';
import { type Chain, checkChain } from '../domain/billing/audit-chain.ts';
import { isoTime } from '../domain/kernel/time.ts';
import type { Position } from '../event-store/port.ts';
import { serviceKey } from '../platform/keyring.ts';
import type { MasterKey } from '../platform/master-key.ts';
import { type Signer, signerFrom } from '../platform/signing.ts';
import { BILLING_PROCESSOR } from '../processors/billing/bill-completed-reveals.ts';
import type { Runtime } from './runtime.ts';

export type ChainDeps = Pick<Runtime, 'store' | 'processed'>;

/** A partner's ledger at one moment. */
export interface ReadChain {
  readonly chain: Chain;
  /** The log's head when the reading began: what had completed by then has its entry in the chain. */
  readonly head: Position;
  /** The log's head up to which the chain was read. */
  readonly billed: Position;
  /** What an auditor should know beside it, a sentence each. */
  readonly notes: string[];
}

/** The position in an empty log. */
const EMPTY_LOG = -1n as Position;

/**
 * Reads a partner's ledger and checks its chain, once every reveal that has completed by now has its entry.
 * @param patienceMs how long the billing processor may take to get there
 */
export const readChain = async (
  { store, processed }: ChainDeps,
  partnerId: string,
  patienceMs: number,
): Promise<ReadChain> => {
  const notes: string[] = [];
  const head = (await store.head()) ?? EMPTY_LOG;
  if (!(await processed.reached([BILLING_PROCESSOR], head, patienceMs))) {
    notes.push(`processor ${BILLING_PROCESSOR} is behind: what it has not come to shows as missing_entry`);
  }
  // What was completed by then has its entry by now, and that is further on in the log.
  const billed = (await store.head()) ?? head;
  return { chain: checkChain(partnerId, await readLedger(store, partnerId, billed)), head, billed, notes };
};

/** The key that anchors are signed with, made on first use. It signs nothing else. */
export const anchorSigner = async (pool: pg.Pool, master: MasterKey): Promise<Signer> =>
  signerFrom(await serviceKey(pool, master, 'audit-anchor'));

/**
 * Makes an anchor of a partner's ledger as it is now.
 * @returns null where the chain has differences: an audit names them
 */
export const makeAnchor = async (
  { pool, master, clock, ...parts }: ChainDeps & Pick<Runtime, 'pool' | 'master' | 'clock'>,
  partnerId: string,
  patienceMs: number,
): Promise<Anchor | null> => {
  const { chain } = await readChain(parts, partnerId, patienceMs);
  if (chain.differences.length > 0) return null;
  const signer = await anchorSigner(pool, master);
  const unsigned = anchorOf(partnerId, chain.entries, isoTime(clock.now()));
  return { ...unsigned, public_key: signer.publicKey, signature: signer.sign(anchorText(unsigned)) };
};
