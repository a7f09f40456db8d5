/** `doorplate-client verify`: whether the ledger is sound, and whether it is what the partner's own records say. */
import { existsSync } from 'node:fs';
import { appendFile, readFile } from 'node:fs/promises';
import type { Client } from '../client.ts';
import type { CompletedReveal, LedgerAnchor, LedgerEntry } from '../generated.ts';
import type { LedgerProof } from '../ledger.ts';
import { withoutMark } from './files.ts';

export interface VerifyOptions {
  readonly client: Client;
  /** A UTC month, `2026-03`: its receipts alone are compared. Default: all months. */
  readonly month?: string | undefined;
  /** A file of webhook bodies and of receipts, a line each or as one array. */
  readonly receipts?: string | undefined;
  /** A file of anchors, a line each: they must still fit, and the newest is added. It need not exist. */
  readonly anchors?: string | undefined;
  readonly signal: AbortSignal;
  readonly output: { write(text: string): unknown };
}

type Receipt = Pick<CompletedReveal, 'reveal_id' | 'tracker_id' | 'billable_units' | 'completed_at'>;
type Months = LedgerProof['months'];

/** @returns whether everything fits @throws Error with one line for a file that cannot be used; DoorplateError */
export const verify = async (options: VerifyOptions): Promise<boolean> => {
  const { client, month, signal, output } = options;
  const receipts = options.receipts === undefined ? null : await readReceipts(options.receipts);
  const kept = options.anchors === undefined ? [] : await readAnchors(options.anchors);
  const isMeant = (completedAt: string): boolean => month === undefined || completedAt.startsWith(month);
  const entries: LedgerEntry[] = [];
  const onEntry = (entry: LedgerEntry): void => {
    if (receipts !== null && isMeant(entry.completed_at)) entries.push(entry);
  };
  const proof = await client.verifyLedger({ anchors: kept, onEntry, signal });
  const say = (line: string): unknown => output.write(`${line}\n`);
  if (proof.difference !== null) {
    const { kind, number, detail } = proof.difference;
    say(`${kind}${number === null ? '' : ` at entry ${number}`}: ${detail}`);
    return false;
  }
  // Whatever the receipts say: the ledger itself is sound.
  if (options.anchors !== undefined) await keep(options.anchors, kept, proof.anchor);
  const differences =
    receipts === null
      ? []
      : compared(
          entries,
          receipts.filter((one) => isMeant(one.completed_at)),
        );
  for (const line of differences) say(line);
  if (differences.length > 0) return false;
  for (const one of monthsOf(proof.months, month))
    say(`${one.month}: ${one.entries} entries, ${one.units} units`);
  if (proof.publicKey !== null)
    say(`anchors kept and fitting: ${kept.length}, signed with ${proof.publicKey}`);
  if (receipts !== null) say(`receipts found for all entries: ${entries.length}`);
  say(`OK: ${proof.entries} entries and ${proof.units} units in all, head ${proof.head?.digest ?? 'none'}`);
  return true;
};

const monthsOf = (months: Months, month: string | undefined): Months =>
  month === undefined
    ? months
    : [months.find((one) => one.month === month) ?? { month, entries: 0, units: 0 }];

/** Every difference, a line each. */
const compared = (entries: readonly LedgerEntry[], receipts: readonly Receipt[]): string[] => {
  const byReveal = new Map(entries.map((entry) => [entry.reveal_id, entry]));
  const own = new Set(receipts.map(({ reveal_id }) => reveal_id));
  return [
    ...receipts.flatMap((receipt) => differenceOf(byReveal.get(receipt.reveal_id), receipt)),
    ...entries
      .filter(({ reveal_id }) => !own.has(reveal_id))
      .map(({ number, reveal_id, units, user_id }) => {
        const who = user_id === null ? '' : `, revealed in the dashboard by user ${user_id}`;
        return `unknown_reveal at entry ${number}: ${units} units for reveal ${reveal_id}${who}, of which the file has nothing`;
      }),
  ];
};

const differenceOf = (entry: LedgerEntry | undefined, receipt: Receipt): string[] => {
  const { reveal_id, billable_units, tracker_id, completed_at } = receipt;
  if (entry === undefined)
    return [`missing_entry: reveal ${reveal_id} of ${completed_at} is not in the ledger`];
  const at = `at entry ${entry.number}: reveal ${reveal_id}`;
  if (entry.units !== billable_units)
    return [`unit_mismatch ${at} has ${entry.units} units, your record says ${billable_units}`];
  if (entry.tracker_id !== tracker_id || entry.completed_at !== completed_at)
    return [
      `receipt_mismatch ${at} has tracker ${entry.tracker_id} and time ${entry.completed_at}, your record says ${tracker_id} and ${completed_at}`,
    ];
  return [];
};

/** A value of a file, and where it stands. */
type Placed = readonly [value: unknown, where: string];

/** @throws Error with one line */
const readText = (path: string): Promise<string> =>
  readFile(path, 'utf8').then(withoutMark, (error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read: ${error.code}`);
  });

/** @throws Error with one line */
const parsed = (json: string, where: string): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    throw new Error(`${where} is not JSON`);
  }
};

const linesOf = (text: string, path: string): readonly Placed[] =>
  text.split('\n').flatMap((line, at) => {
    const where = `${path}, line ${at + 1}`;
    return line.trim() === '' ? [] : [[parsed(line, where), where] as const];
  });

const valuesOf = (text: string, path: string): readonly Placed[] =>
  text.trimStart().startsWith('[')
    ? (parsed(text, path) as unknown[]).map((value, at) => [value, `${path}, item ${at + 1}`])
    : linesOf(text, path);

/** Complete receipts: webhooks of other kinds and pending receipts tell nothing of a unit. */
const readReceipts = async (path: string): Promise<Receipt[]> =>
  valuesOf(await readText(path), path).flatMap(([value, where]) => {
    const { type, data } = (value ?? {}) as { type?: unknown; data?: unknown };
    if (typeof type === 'string' && type !== 'reveal.completed') return [];
    const receipt = (type === 'reveal.completed' ? data : value) as Partial<CompletedReveal> | null;
    if (typeof receipt?.reveal_id !== 'string')
      throw new Error(`${where} is neither a webhook's body nor a receipt`);
    return receipt.status === 'complete' ? [receipt as Receipt] : [];
  });

/** Lines alone: the next run adds one. */
const readAnchors = async (path: string): Promise<LedgerAnchor[]> => {
  const text = existsSync(path) ? await readText(path) : '';
  return linesOf(text, path).map(([value, where]) => {
    const anchor = value as Partial<LedgerAnchor> | null;
    if (typeof anchor?.signature !== 'string' || typeof anchor.entries !== 'number')
      throw new Error(`${where} is not an anchor`);
    return anchor as LedgerAnchor;
  });
};

/** Adds the newest anchor as a line of its own, unless it is kept already. */
const keep = async (
  path: string,
  kept: readonly LedgerAnchor[],
  anchor: LedgerAnchor | null,
): Promise<void> => {
  if (anchor === null || kept.some(({ signature }) => signature === anchor.signature)) return;
  const before = existsSync(path) ? await readText(path) : '';
  const newLine = before === '' || before.endsWith('\n') ? '' : '\n';
  await appendFile(path, `${newLine}${JSON.stringify(anchor)}\n`);
};
