import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Runtime } from '../bin/runtime.ts';
import { readLedger } from '../commands/billing/read-for-audit.ts';
import { type Anchor, anchorSchema } from '../domain/billing/anchors.ts';
import { readText } from '../platform/text-file.ts';
import { auditBilling, type BillingAudit, makeAnchor } from '../processors/billing/audit.ts';
import { billCompletedReveals } from '../processors/billing/bill-completed-reveals.ts';
import { recordAuditDifferences } from '../processors/operations/operator-alerts.ts';
import { listPartnerIds } from '../queries/partners/partners.ts';
import { ledgerOf } from './partner.ts';
import { print } from './print.ts';
import { Refused, type Session, withSession } from './session.ts';

/** Time limit for processors and projections to reach the log's head, milliseconds. */
export const MAX_WAIT_MS = 30_000;

/** The processors that the command runs if no server does. */
export const billing = ({ store, clock }: Runtime) => [billCompletedReveals(store, clock)];

function addAnchorCommand(audit: Command): void {
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
}

async function partnersOf(session: Session, named: string | undefined): Promise<string[]> {
  if (named !== undefined) return [await ledgerOf(session, named)];
  await session.projected(await session.store.head());
  return [...(await listPartnerIds(session.db))];
}

/** Parses `--anchor`: a digest of 64 hexadecimal digits, or a file of anchors, one per line. @throws InvalidArgumentError */
function anchorsFrom(text: string): string | readonly Anchor[] {
  if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase();
  let lines: string[];
  try {
    lines = readText(text).split('\n');
  } catch {
    throw new InvalidArgumentError('neither a file that can be read nor a digest of 64 hexadecimal digits');
  }
  return lines.flatMap((line, index) => (line.trim() === '' ? [] : [anchorIn(line, index + 1)]));
}

function anchorIn(line: string, number: number): Anchor {
  try {
    return anchorSchema.parse(JSON.parse(line));
  } catch {
    throw new InvalidArgumentError(`line ${number} of the file is not an anchor`);
  }
}

interface AuditOptions {
  readonly partner: string;
  readonly month?: string;
  readonly anchor?: string | readonly Anchor[];
  readonly json?: true;
  readonly csv?: true;
  readonly entries?: true;
}

function monthFrom(text: string): string {
  if (/^(?!0000)\d{4}-(0[1-9]|1[0-2])$/.test(text)) return text;
  throw new InvalidArgumentError('not a month as YYYY-MM');
}

/** Adds `doorplate audit billing|anchor`. */
export function addAuditCommands(program: Command): void {
  const audit = program.command('audit').description('proofs that the books are right');
  addAnchorCommand(audit);
  audit
    .command('billing')
    .description("replay a partner's ledger and name every difference; exits 1 if there is one")
    .requiredOption('--partner <partner>', 'the partner, by id or name')
    .option('--month <month>', 'list this month alone, YYYY-MM', monthFrom)
    .option(
      '--anchor <file>',
      'anchors that `audit anchor` wrote earlier, or one head digest: they must still fit the ledger',
      anchorsFrom,
    )
    .option('--json', 'print JSON')
    .addOption(new Option('--csv', 'print the months as CSV').conflicts('json'))
    .addOption(
      new Option(
        '--entries',
        'print the entries as JSON Lines, unchecked, for a verifier of your own',
      ).conflicts(['month', 'anchor', 'json', 'csv']),
    )
    .action((options: AuditOptions) =>
      withSession(async (session) => {
        const partner_id = await ledgerOf(session, options.partner);
        if (options.entries) return await printEntries(session, partner_id);
        const { report, notes } = await auditUpToDate(session, partner_id, options);
        printReport(report, options);
        for (const note of notes) process.stderr.write(`doorplate: ${note}\n`);
        const found = report.differences.length;
        if (found > 0 && session.config.OPERATOR_WEBHOOK_URL !== undefined) {
          const { pool, clock } = session;
          await recordAuditDifferences(pool, partner_id, report.differences, clock.now());
        }
        if (found > 0) throw new Refused(`${found} ${found === 1 ? 'difference' : 'differences'} found`);
      }, billing),
    );
}

const auditUpToDate = (
  session: Session,
  partnerId: string,
  { month, anchor }: AuditOptions,
): Promise<BillingAudit> =>
  auditBilling(session, {
    partnerId,
    patienceMs: MAX_WAIT_MS,
    ...(month === undefined ? {} : { month }),
    ...(anchor === undefined ? {} : anchorsOf(anchor, partnerId)),
  });

/** Selects the partner's anchors. @throws Refused if there is none, because nothing would be checked */
function anchorsOf(anchor: string | readonly Anchor[], partnerId: string) {
  if (typeof anchor === 'string') return { digest: anchor };
  const anchors = anchor.filter(({ partner_id }) => partner_id === partnerId);
  if (anchors.length === 0) throw new Refused(`anchor_not_found: the file has none of partner ${partnerId}`);
  return { anchors };
}

function printReport(report: BillingAudit['report'], { json, csv }: AuditOptions): void {
  if (json) print(report, true);
  else if (csv) printCsv(report);
  else {
    const { partner_id, months, units, differences } = report;
    print([...months], false);
    print({ partner_id, units, differences: differences.length }, false);
    if (differences.length > 0) print([...differences], false);
  }
}

/** Prints months to stdout, so that they form a CSV table, and differences to stderr. */
function printCsv({ months, differences }: BillingAudit['report']): void {
  const rows = months.map((month) => Object.values(month).join(','));
  process.stdout.write(`${['month,entries,units,head_digest', ...rows].join('\n')}\n`);
  for (const difference of differences) {
    const cells = Object.values(difference).map((value) => value ?? '-');
    process.stderr.write(`doorplate: ${cells.join(' ')}\n`);
  }
}

async function printEntries({ store }: Session, partnerId: string): Promise<void> {
  const head = await store.head();
  if (head === null) return;
  for (const { revision, data } of await readLedger(store, partnerId, head)) {
    process.stdout.write(`${JSON.stringify({ number: revision, ...data })}\n`);
  }
}
