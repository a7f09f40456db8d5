import { type Command, InvalidArgumentError } from 'commander';
import { validate as isUuid } from 'uuid';
import { erasureDeps } from '../bin/erasure.ts';
import { canonicalText, parseAddress } from '../domain/kernel/address.ts';
import { DAY, isoTime } from '../domain/kernel/time.ts';
import { timeText } from '../operations/texts.ts';
import { AnotherRuns, exclusiveJob } from '../platform/postgres/transactions.ts';
import { auditBilling } from '../processors/billing/audit.ts';
import {
  type ErasedVisitor,
  eraseVisitor,
  type FoundVisitor,
  findVisitor,
  type Visitor,
  type Wanted,
} from '../processors/erase-visitor.ts';
import { ConsumersBehind } from '../processors/retire-streams.ts';
import { MAX_WAIT_MS } from './audit.ts';
import { partnerOf } from './partner.ts';
import { lines, print, table } from './print.ts';
import { progressBar } from './progress.ts';
import { Refused, type Session, withWorkers } from './session.ts';

interface Label {
  readonly name: string;
  readonly value: string;
}

interface Options {
  readonly ip?: string;
  readonly session?: string;
  readonly tracker?: string;
  readonly label?: Label;
  readonly partner?: string;
  readonly dryRun?: boolean;
  readonly json: boolean;
}

/** Stands for standard input: other users of the machine see what a command line has. */
const FROM_INPUT = '-';

function addressIn(text: string): string {
  if (text === FROM_INPUT) return FROM_INPUT;
  const address = parseAddress(text);
  if (address === null) throw new InvalidArgumentError('not an IP address');
  return canonicalText(address);
}

/** Longer than an address and its line's end. */
const MAX_INPUT = 100;

async function readAddress(command: Command): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > MAX_INPUT) break;
  }
  const address = parseAddress(text.trim());
  if (address === null) return command.error('error: standard input is not an IP address', { exitCode: 2 });
  return canonicalText(address);
}

function uuidIn(text: string): string {
  if (!isUuid(text)) throw new InvalidArgumentError('not a UUID');
  return text.toLowerCase();
}

function labelIn(text: string): Label {
  const end = text.indexOf('=');
  if (end < 1) throw new InvalidArgumentError('not a label as name=value');
  return { name: text.slice(0, end), value: text.slice(end + 1) };
}

/** Adds `doorplate privacy find|erase`. */
export function addPrivacyCommands(program: Command): void {
  const privacy = program.command('privacy').description('what is kept of a visitor, and its erasure');
  withVisitor(privacy.command('find').description('what is kept of a visitor; changes nothing')).action(
    async (options: Options, command: Command) => {
      const visitor = await visitorIn(options, command);
      return running(async (session) => {
        printFound(await find(session, await wantedBy(session, visitor, options)), options);
      });
    },
  );
  withVisitor(
    privacy
      .command('erase')
      .description('erase it, and report what was erased and what remains; may be interrupted and repeated'),
  )
    .option('--dry-run', 'show what would be erased, and change nothing', false)
    .action(async (options: Options, command: Command) => {
      const visitor = await visitorIn(options, command);
      return running(async (session) => {
        const wanted = await wantedBy(session, visitor, options);
        if (options.dryRun) {
          printFound(await find(session, wanted), options);
          return;
        }
        await exclusiveJob(session.databaseUrl, 'erasure', () => eraseAndReport(session, wanted, options));
      });
    });
}

const withVisitor = (command: Command): Command =>
  command
    .option(
      '--ip <address>',
      "the visitor's address, IPv4 or IPv6; - reads it from standard input",
      addressIn,
    )
    .option('--session <id>', 'one session, and all that hangs on it', uuidIn)
    .option('--tracker <id>', 'with --label: the sessions of this tracker that have the label', uuidIn)
    .option('--label <name=value>', 'with --tracker: the label', labelIn)
    .option('--partner <partner>', 'only sessions and receipts of this partner, by id or name')
    .option('--json', 'print JSON', false);

/** Returns whom the options name. Ends with wrong usage unless they name one visitor in one way. */
async function visitorIn({ ip, session, tracker, label }: Options, command: Command): Promise<Visitor> {
  const ways = [ip, session, tracker ?? label].filter((way) => way !== undefined);
  if (ways.length === 1 && ip !== undefined)
    return { ip: ip === FROM_INPUT ? await readAddress(command) : ip };
  if (ways.length === 1 && session !== undefined) return { session_id: session };
  if (ways.length === 1 && tracker !== undefined && label !== undefined)
    return { tracker_id: tracker, label };
  return command.error('error: name one visitor: --ip, --session, or --tracker with --label', {
    exitCode: 2,
  });
}

const wantedBy = async (session: Session, visitor: Visitor, { partner }: Options): Promise<Wanted> => ({
  visitor,
  partner_id: partner === undefined ? null : (await partnerOf(session, partner)).partner_id,
});

/** Runs work with all processors: what they have not passed cannot be deleted. */
const running = (work: (session: Session) => Promise<void>): Promise<void> =>
  withWorkers(async (session) => {
    try {
      await work(session);
    } catch (error) {
      if (error instanceof ConsumersBehind) throw new Refused(`${error.message}; repeat the command`);
      if (error instanceof AnotherRuns) throw new Refused(error.message);
      throw error;
    }
  });

const { signal } = new AbortController();

async function find(session: Session, wanted: Wanted): Promise<FoundVisitor> {
  const bar = progressBar('searching sessions', null);
  try {
    return await findVisitor(session, wanted, bar.update);
  } finally {
    bar.end();
  }
}

function printFound(found: FoundVisitor, { json }: Options): void {
  const { sessions, reveals, payloads, lookups, ...counts } = found;
  const shown = sessions.map(({ stream: _, ...session }) => session);
  const ofPartners = [...lookups].map(([partner_id, count]) => ({ partner_id, lookups: count }));
  if (json) {
    print({ sessions: shown, reveals, payloads, ...counts, lookups: ofPartners }, true);
    return;
  }
  if (isNothing(found)) {
    say('Nothing is kept of this visitor.');
    return;
  }
  if (shown.length > 0) say(table(shown));
  if (reveals.length > 0) say(table([...reveals]));
  const requested = ofPartners.reduce((sum, one) => sum + one.lookups, 0);
  const sums = { sessions: shown.length, reveals: reveals.length, payloads: payloads.length };
  say(lines({ ...sums, ...counts, lookups: requested }));
}

const isNothing = ({
  sessions,
  reveals,
  payloads,
  clues,
  saved_results,
  enrichments,
  lookups,
}: FoundVisitor) =>
  sessions.length + reveals.length + payloads.length + clues + saved_results + enrichments + lookups.size ===
  0;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function eraseAndReport(session: Session, wanted: Wanted, { json }: Options): Promise<void> {
  const found = await find(session, wanted);
  const bar = progressBar('erasing sessions', found.sessions.length);
  let erased: ErasedVisitor;
  try {
    erased = await eraseVisitor(erasureDeps(session, signal), wanted, found, bar.update);
  } finally {
    bar.end();
  }
  const differences = await audit(session, found);
  const remains = remainsAfter(session, wanted, found, erased.clues);
  const report = { erased, remains, audit: { differences } };
  if (json) print(report, true);
  else {
    if (isNothing(found)) say('Nothing is kept of this visitor: this run erased nothing.\n');
    printReport(session, report);
  }
  if (differences > 0)
    throw new Refused(`${differences} differences found: doorplate audit billing names them`);
}

/** Audits the ledgers of all partners whose data was touched. @returns the number of differences */
async function audit(session: Session, { sessions, reveals, lookups }: FoundVisitor): Promise<number> {
  const partners = new Set([
    ...[...sessions, ...reveals].map(({ partner_id }) => partner_id),
    ...lookups.keys(),
  ]);
  let differences = 0;
  for (const partnerId of partners) {
    const { report } = await auditBilling(session, { partnerId, patienceMs: MAX_WAIT_MS });
    differences += report.differences.length;
  }
  return differences;
}

interface Remaining {
  readonly what: string;
  readonly why: string;
  /** An instant (ISO 8601), or words. */
  readonly until: string;
}

/**
 * Lists what an erasure leaves (docs/privacy.md), whatever this run has found: an earlier one that was interrupted may have erased
 * the rest.
 */
function remainsAfter(
  { config, clock }: Pick<Session, 'config' | 'clock'>,
  { visitor, partner_id }: Wanted,
  found: FoundVisitor,
  clues: number,
): Remaining[] {
  const inDays = (days: number): string => isoTime(clock.now() + days * DAY);
  const remains: Remaining[] = [];
  const add = (what: string, why: string, until: string): void => void remains.push({ what, why, until });
  add(
    'entries of the ledger: reveal, tracker, key or user, time, unit; in the log of changes those of dashboard users',
    'billing is exact; they name no address, label or company',
    'for ever; the log of changes 400 days',
  );
  add(
    'the bare ids of what was erased',
    'answers 410, and lets the audit accept that it is gone',
    inDays(60),
  );
  add('counts by tracker and hour', 'usage; they name no visit', inDays(400));
  add(
    'metadata of deliveries: ids of events, times, statuses',
    'history of webhooks; no content',
    inDays(90),
  );
  if (found.lookups.size > 0) {
    add(
      "partners' own requests to look the address up, with the address, in the streams intake-…",
      'they share a stream with other requests of the partner, which its allowance is counted by; no answer shows them',
      inDays(91),
    );
  }
  if (clues > 0) add("the sender's ids of clues", 'a repeated clue is recognized by them', inDays(31));
  if (!('ip' in visitor) || partner_id !== null) {
    add(
      "what is saved of the visitor's address: the lookup result, work under way and clues",
      'partners share it; --ip without --partner erases it',
      '400 days after it was last asked for; clues 31 days',
    );
  }
  if ('ip' in visitor && partner_id === null && found.saved_results + found.enrichments > 0) {
    add(
      'the name of the stream that held the lookup result, a keyed digest of the address',
      'a deleted stream is never used again',
      'for ever in EventStoreDB, otherwise 30 days',
    );
  }
  if (config.EVENTSTORE_URL !== undefined) {
    add(
      'deleted events in the files of EventStoreDB',
      'a deletion hides events; a scavenge on each node removes them',
      'the next scavenge',
    );
  }
  add(
    'deleted rows in the files of PostgreSQL',
    'a deletion leaves the space to be used again',
    'the next VACUUM, and until the space is used again',
  );
  add('backups and WAL archives', 'a command does not reach them', 'you delete them');
  add('what partners received: answers and webhooks', 'it is theirs', 'they delete it');
  return remains;
}

interface Report {
  readonly erased: ErasedVisitor;
  readonly remains: readonly Remaining[];
  readonly audit: { readonly differences: number };
}

function printReport({ clock }: Pick<Session, 'clock'>, { erased, remains, audit }: Report): void {
  say(`Erasure of a visitor, ${timeText(new Date(clock.now()))}\n`);
  say(lines(erased));
  say('\nWhat remains:\n');
  for (const { what, why, until } of remains)
    say(`- ${what}\n  why: ${why}\n  until: ${/^\d{4}-/.test(until) ? timeText(new Date(until)) : until}`);
  say(
    '\nThe counts are those of this run; what an earlier one that was interrupted had erased is not among them.',
  );
  say(
    `Audit of the ledgers: ${audit.differences === 0 ? 'no difference' : `${audit.differences} differences`}`,
  );
}
