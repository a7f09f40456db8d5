/** Erases the clues of an address from the event store and the read model. */
import { ownContext } from '../../commands/handle.ts';
import { keepOtherSignals, readDay } from '../../commands/signals/keep-signals.ts';
import {
  type Clue,
  nextSignalsStream,
  SIGNALS_PREFIX,
  signalsStream,
  visitorText,
} from '../../domain/signals/events.ts';
import { WrongExpectedRevision } from '../../event-store/port.ts';
import type { DayKeys } from '../../platform/crypto/keyring.ts';
import { createConsumerProgress } from '../consumers.ts';
import type { ErasureDeps } from '../erasure-deps.ts';
import { ConsumersBehind } from '../retire-streams.ts';

export interface EraseSignalsDeps extends ErasureDeps {
  readonly dayKeys: DayKeys;
}

/** A day on which clues of the address were received, and its name there. */
export interface DayOfClues {
  readonly day: string;
  readonly visitor: string;
  readonly clues: number;
}

/** Counts the clues of a canonical address, by the UTC day of their receipt. */
export async function findClues(
  { pool, dayKeys }: Pick<EraseSignalsDeps, 'pool' | 'dayKeys'>,
  ip: string,
): Promise<DayOfClues[]> {
  const { rows } = await pool.query<{ day: string }>(
    'select day::text from read.signal_day order by signal_day.day',
  );
  const found: DayOfClues[] = [];
  for (const { day } of rows) {
    const key = await dayKeys.of(day);
    if (key === null) continue;
    const visitor = key.digest(visitorText(ip));
    const counted = await pool.query<{ clues: number }>({
      name: 'clues_of_visitor',
      text: 'select count(*)::int as clues from read.signal where visitor = $1',
      values: [visitor],
    });
    const clues = counted.rows[0]?.clues ?? 0;
    if (clues > 0) found.push({ day, visitor, clues });
  }
  return found;
}

const PROJECTED_MS = 30_000;
const MAX_WAITS = 50;

/**
 * Erases the clues of a canonical address. The ids that their sender gave them stay, so that a repeat of them is recognized. A repeat
 * completes an interrupted run.
 * @returns the number of erased clues
 * @throws ConsumersBehind if a consumer of the log does not get on, and the port's errors
 */
export async function eraseSignals(deps: EraseSignalsDeps, ip: string): Promise<number> {
  const { store, progress } = deps;
  if (!(await progress.reached(['signals'], await store.head(), PROJECTED_MS)))
    throw new ConsumersBehind('the read model signals is behind the log');
  const found = await findClues(deps, ip);
  const unfinished = await interruptedDays(deps);
  for (const day of new Set([...found.map((one) => one.day), ...unfinished])) {
    const visitor = (await deps.dayKeys.of(day))?.digest(visitorText(ip));
    await eraseOfDay(deps, day, (clue) => clue.visitor === visitor);
  }
  if (!(await progress.reached(['signals'], await store.head(), PROJECTED_MS)))
    throw new ConsumersBehind('the read model signals is behind the log');
  return found.reduce((sum, { clues }) => sum + clues, 0);
}

/** Lists the days whose earlier stream an interrupted erasure has left: the read model shows no clue of it any more. */
async function interruptedDays({ store, pool }: EraseSignalsDeps): Promise<string[]> {
  const { rows } = await pool.query<{ day: string; generation: number }>(
    'select day::text, generation from read.signal_day where generation > 0',
  );
  const days: string[] = [];
  for (const { day, generation } of rows) {
    for await (const _ of store.readStream(signalsStream(day, generation - 1), { limit: 1 })) days.push(day);
  }
  return days;
}

/** Replaces the day's stream by one without the clues, and that one too if it has such that another erasure had kept. */
async function eraseOfDay(
  deps: EraseSignalsDeps,
  day: string,
  isErased: (clue: Clue) => boolean,
): Promise<void> {
  const { store, pool, clock, consumersOf, signal } = deps;
  const consumerProgress = createConsumerProgress(pool, consumersOf(SIGNALS_PREFIX));
  let stream = signalsStream(day);
  for (let waits = 0; waits < MAX_WAITS && !signal.aborted; ) {
    const found = await readDay(store, stream, isErased);
    if (found.isExpired) {
      stream = nextSignalsStream(stream);
      continue;
    }
    waits += 1;
    // An interrupted run may have gone on to the next stream, and then the day has two.
    const next = await readDay(store, nextSignalsStream(stream), isErased);
    if (found.matches === 0 && next.last === null) return;
    const { last } = await keepOtherSignals(store, stream, isErased, ownContext(clock));
    if (last === null) return;
    if (!(await consumerProgress.waitFor(last.position, signal))) continue;
    try {
      await store.expire(stream, last.revision);
    } catch (error) {
      // A batch was received meanwhile, and is kept too.
      if (!(error instanceof WrongExpectedRevision)) throw error;
    }
  }
  if (!signal.aborted)
    throw new ConsumersBehind(`${SIGNALS_PREFIX}${day} has not been read by all consumers`);
}
