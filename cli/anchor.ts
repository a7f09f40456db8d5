import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import type { Runtime } from '../bin/runtime.ts';
import { type Anchor, anchorSchema } from '../domain/billing/audit-ledger.ts';
import { makeAnchor } from '../processors/billing/audit.ts';
import { billCompletedReveals } from '../processors/billing/bill-completed-reveals.ts';
import { listPartners } from '../queries/partners/partners.ts';
import { partnerOf } from './partner.ts';
import { Refused, type Session, withSession } from './session.ts';

/** Time limit for processors and projections to reach the log's head, milliseconds. */
export const MAX_WAIT_MS = 30_000;

/** The processors that the command runs if no server does. */
export const billing = ({ store, clock }: Runtime) => [billCompletedReveals(store, clock)];

/** Adds `doorplate audit anchor`. */
export const addAnchorCommand = (audit: Command): void => {
  audit
    .command('anchor')
    .description('print a signed anchor of the ledger, a line of JSON, to be kept where the data is not')
    .option(
      '--partner <partner>',
      'the partner, by id or name; all partners, a line each, when none is named',
    )
    .action(({ partner }: { readonly partner?: string }) =>
      withSession(async (session) => {
        for (const partnerId of await partnersOf(session, partner)) {
          const anchor = await makeAnchor(session, partnerId, MAX_WAIT_MS);
          if (anchor === null) {
            throw new Refused(
              `ledger_differs: partner ${partnerId}; doorplate audit billing names the differences`,
            );
          }
          process.stdout.write(`${JSON.stringify(anchor)}\n`);
        }
      }, billing),
    );
};

const partnersOf = async (session: Session, named: string | undefined): Promise<string[]> => {
  if (named !== undefined) return [(await partnerOf(session, named)).partner_id];
  await session.projected(await session.store.head());
  return (await listPartners(session.db)).map(({ partner_id }) => partner_id);
};

/** Parses `--anchor`: a digest of 64 hexadecimal digits, or a file of anchors, one per line. @throws InvalidArgumentError */
export const anchorsFrom = (text: string): string | readonly Anchor[] => {
  if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase();
  let lines: string[];
  try {
    lines = readFileSync(text, 'utf8').split('\n');
  } catch {
    throw new InvalidArgumentError('neither a file that can be read nor a digest of 64 hexadecimal digits');
  }
  return lines.flatMap((line, index) => (line.trim() === '' ? [] : [anchorIn(line, index + 1)]));
};

const anchorIn = (line: string, number: number): Anchor => {
  try {
    return anchorSchema.parse(JSON.parse(line));
  } catch {
    throw new InvalidArgumentError(`line ${number} of the file is not an anchor`);
  }
};
