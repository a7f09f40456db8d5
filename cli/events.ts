import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Runtime } from '../bin/runtime.ts';
import { maskEvent } from '../domain/event-privacy.ts';
import { readEvent } from '../domain/kernel/events.ts';
import { sessionEvents } from '../domain/sessions/events.ts';
import { signalEvents } from '../domain/signals/events.ts';
import { payloadEvents } from '../domain/webhooks/events.ts';
import type { EventStore, Position, RecordedEvent } from '../event-store/port.ts';
import type { DayKeys } from '../platform/crypto/keyring.ts';
import { writeOut } from './print.ts';
import { Refused, withRuntime, withSession } from './session.ts';

const GONE = '(its key is gone)';

/** Opens the sealed parts of an event's data while the key of their day exists. */
async function unseal(
  dayKeys: DayKeys,
  stored: { readonly type: string; readonly data: object },
): Promise<object> {
  const open = async (day: string, sealed: string, about: string): Promise<string | null> => {
    const key = await dayKeys.of(day);
    try {
      return key?.open(Buffer.from(sealed, 'base64'), about).toString('utf8') ?? null;
    } catch {
      return null;
    }
  };
  const json = (text: string | null): unknown => (text === null ? GONE : JSON.parse(text));

  const session = readEvent(sessionEvents, stored);
  if (session?.type === 'sessions.SessionCreated.v1') {
    const { sealed, first_seen_at, session_id } = session.data;
    return { ...stored.data, sealed: json(await open(first_seen_at.slice(0, 10), sealed, session_id)) };
  }
  const payload = readEvent(payloadEvents, stored);
  if (payload) {
    const { day, sealed, event_id } = payload.data;
    return { ...stored.data, sealed: json(await open(day, sealed, event_id)) };
  }
  const signals = readEvent(signalEvents, stored);
  if (signals) {
    const { day, clues } = signals.data;
    const opened = clues.map(async (clue) => ({
      ...clue,
      sealed: (await open(day, clue.sealed, clue.domain)) ?? GONE,
    }));
    return { ...stored.data, clues: await Promise.all(opened) };
  }
  return stored.data;
}

interface Shown {
  readonly json: boolean;
  readonly unmask: boolean;
}

interface ShowOptions extends Shown {
  readonly from?: number;
  readonly limit?: number;
  readonly backwards: boolean;
}

interface TailOptions extends Shown {
  readonly prefix?: string;
  readonly from?: Position;
  readonly fromStart?: true;
}

function whole(text: string): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value < 2 ** 31) return value;
  throw new InvalidArgumentError('not a whole number from 0');
}

function positionFrom(text: string): Position {
  if (/^\d{1,19}$/.test(text)) return BigInt(text) as Position;
  throw new InvalidArgumentError('not a position in the log');
}

/** Adds `doorplate events show|tail`. */
export function addEventsCommands(program: Command): void {
  const events = program.command('events').description('what is written down, for operators and auditors');
  const shown = (command: Command): Command =>
    command
      .option('--unmask', 'show personal data too; secrets are never shown', false)
      .option('--json', 'print JSON, an event a line', false);

  shown(events.command('show <stream>').description('the events of a stream, personal data masked'))
    .option('--from <revision>', 'begin at this revision', whole)
    .option('--limit <n>', 'at most so many events', whole)
    .option('--backwards', 'the newest first', false)
    .action((stream: string, options: ShowOptions) =>
      withRuntime((runtime) => show(runtime, stream, options)),
    );

  shown(events.command('tail').description('the log as it goes on, until Ctrl-C, personal data masked'))
    .option('--prefix <prefix>', 'only streams whose name begins so, such as reveal-')
    .addOption(
      new Option('--from <position>', 'what comes after this position, then what happens')
        .argParser(positionFrom)
        .conflicts('fromStart'),
    )
    .option('--from-start', 'everything that is kept, then what happens')
    .action((options: TailOptions) => withSession((session) => tail(session, options)));
}

async function show(runtime: Runtime, stream: string, options: ShowOptions): Promise<void> {
  const { store } = runtime;
  if (stream.startsWith('$') || !(await hasEvents(store, stream))) {
    throw new Refused(`stream_not_found: ${stream}: there never was one, or it has expired`);
  }
  const { from, limit, backwards } = options;
  const reading = store.readStream(stream, {
    direction: backwards ? 'backwards' : 'forwards',
    ...(from === undefined ? {} : { from }),
    ...(limit === undefined ? {} : { limit }),
  });
  for await (const event of reading) {
    if (!(await say(runtime, event, options))) return;
  }
}

const hasEvents = async (store: EventStore, stream: string): Promise<boolean> =>
  (await Array.fromAsync(store.readStream(stream, { limit: 1 }))).length > 0;

async function tail(runtime: Runtime, options: TailOptions): Promise<void> {
  const { store } = runtime;
  const done = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => done.abort());
  const following = {
    after: options.fromStart ? null : (options.from ?? (await store.head())),
    signal: done.signal,
    ...(options.prefix === undefined ? {} : { prefixes: [options.prefix] }),
  };
  for await (const { events } of store.follow(following)) {
    for (const event of events) {
      if (done.signal.aborted || !(await say(runtime, event, options))) return;
    }
  }
}

/** Prints an event. @returns false if the reader of stdout has closed it */
async function say({ dayKeys }: Runtime, event: RecordedEvent, { json, unmask }: Shown): Promise<boolean> {
  const { stream, revision, type, id, position } = event;
  const opened = unmask ? await unseal(dayKeys, event).catch(() => event.data) : event.data;
  const { data, metadata } = maskEvent({ ...event, data: opened }, unmask);
  if (json) {
    const line = { stream, revision, position: position.toString(), type, id, at: event.metadata.at };
    return writeOut(`${JSON.stringify({ ...line, data, metadata })}\n`);
  }
  return writeOut(
    `${stream}  ${revision}  ${type}  ${event.metadata.at}  position ${position}\n` +
      `  data      ${JSON.stringify(data)}\n  metadata  ${JSON.stringify(metadata)}\n`,
  );
}
