/** The options of `doorplate-client verify`. */
import { type Command, clientFor, parsed, stopSignal, WrongUsage } from './command.ts';
import { verify } from './verify.ts';

const HELP = `doorplate-client verify [options]

Reads the ledger that you are billed by and checks it from its first entry: numbers, digests, totals and signed anchors. Prints
what it comes to and exits with 0, or the differences and 1 (docs/auditing.md explains them).

  --month       a UTC month as 2026-11, whose units and receipts are meant; by default all
  --receipts    a file of the webhooks or receipts that you kept, a line of JSON each: each has its entry, and each entry has one
  --anchors     a file of yours with the anchors of earlier runs, which must still fit; the newest is added
  --url         of the service; by default DOORPLATE_URL
`;

const OPTIONS = {
  month: { type: 'string' },
  receipts: { type: 'string' },
  anchors: { type: 'string' },
} as const;

const run = async (args: readonly string[]): Promise<number> => {
  const { positionals, values } = parsed(args, OPTIONS);
  if (positionals.length > 1) throw new WrongUsage('verify takes options alone');
  const { month, receipts, anchors } = values;
  if (month !== undefined && !/^\d{4}-(0[1-9]|1[0-2])$/.test(month))
    throw new WrongUsage(`--month is no month as 2026-11: ${month}`);
  const client = clientFor(values.url);
  const isSound = await verify({
    client,
    month,
    receipts,
    anchors,
    signal: stopSignal(),
    output: process.stdout,
  });
  return isSound ? 0 : 1;
};

export const verifyCommand: Command = { help: HELP, options: OPTIONS, run };
