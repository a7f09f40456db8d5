import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { readLedger } from '../../commands/billing/read-for-audit.ts';
import { type Anchor, anchorOf, anchorText } from '../../domain/billing/anchor.ts';
import { type Chain, createChainCheck } from '../../domain/billing/audit-chain.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { type Signer, serviceKey, signerFrom } from '../../platform/crypto/keyring.ts';
import type { MasterKey } from '../../platform/crypto/master-key.ts';
import type { Reached } from '../reached.ts';
import { BILLING } from './bill-completed-reveals.ts';

export interface ChainDeps {
  readonly store: EventStore;
  readonly processed: Reached;
}

export interface SigningDeps {
  readonly pool: pg.Pool;
  readonly master: MasterKey;
  readonly clock: Clock;
}

/** A partner's ledger at one moment. */
export interface ReadChain {
  readonly chain: Chain;
  /** Head of the log at the start: reveals completed before it have an entry in the chain. */
  readonly head: Position;
  /** Head of the log up to which the chain was read. */
  readonly billed: Position;
  /** Notes for the auditor, one sentence each. */
  readonly notes: string[];
}

/** A millisecond or two of work. */
const CHECKED_AT_ONCE = 100;

const EMPTY_LOG = -1n as Position;

/**
 * Reads a partner's ledger and checks its chain, after every reveal completed so far has an entry.
 * @param patienceMs time limit for the billing processor
 */
export const readChain = async (
  { store, processed }: ChainDeps,
  partnerId: string,
  patienceMs: number,
): Promise<ReadChain> => {
  const notes: string[] = [];
  const head = (await store.head()) ?? EMPTY_LOG;
  if (!(await processed.reached([BILLING.name], head, patienceMs))) {
    notes.push(`processor ${BILLING.name} is behind: what it has not come to shows as missing_entry`);
  }
  // Everything completed before `head` has its entry by now, later in the log.
  const billed = (await store.head()) ?? head;
  const { add, chain } = createChainCheck(partnerId);
  for (const [nth, entry] of (await readLedger(store, partnerId, billed)).entries()) {
    add(entry);
    if (nth % CHECKED_AT_ONCE === 0) await setImmediate();
  }
  return { chain, head, billed, notes };
};

/** Loads or creates the key that signs anchors and nothing else. */
export const anchorSigner = async (pool: pg.Pool, master: MasterKey): Promise<Signer> =>
  signerFrom(await serviceKey(pool, master, 'audit-anchor'));

/** Makes an anchor of a partner's current ledger. @returns null if the chain has differences; an audit lists them */
export const makeAnchor = async (
  { pool, master, clock, ...parts }: ChainDeps & SigningDeps,
  partnerId: string,
  patienceMs: number,
): Promise<Anchor | null> => {
  const { chain } = await readChain(parts, partnerId, patienceMs);
  if (chain.differences.length > 0) return null;
  const signer = await anchorSigner(pool, master);
  const unsigned = anchorOf(partnerId, chain.entries, isoTime(clock.now()));
  return { ...unsigned, public_key: signer.publicKey, signature: signer.sign(anchorText(unsigned)) };
};
