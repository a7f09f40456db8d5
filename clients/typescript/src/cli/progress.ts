/** One line that says how far a run is: rewritten on a terminal, every ten seconds elsewhere. */
import type { LookupProgress } from '../lookup-many.ts';
import { withoutControls } from './csv.ts';

const TERMINAL_MS = 200;
const FILE_MS = 10_000;
/** The rate is that of the last minute. */
const WINDOW_MS = 60_000;
const BAR = 24;

export interface ProgressLine {
  /** Shows the last state and ends the line. */
  end(): void;
}

interface Sample {
  readonly at: number;
  readonly done: number;
}

export const showProgress = (
  read: () => LookupProgress,
  out: { write(text: string): unknown; readonly isTTY?: boolean | undefined },
  now: () => number = () => performance.now(),
): ProgressLine => {
  let samples: Sample[] = [{ at: now(), done: read().done }];
  const show = (): void => {
    const progress = read();
    const at = now();
    samples = [...samples.filter((sample) => at - sample.at <= WINDOW_MS), { at, done: progress.done }];
    const text = progressText(progress, rateOf(samples));
    out.write(out.isTTY ? `\r\x1b[2K${text}` : `${text}\n`);
  };
  const timer = setInterval(show, out.isTTY ? TERMINAL_MS : FILE_MS);
  return {
    end: () => {
      clearInterval(timer);
      show();
      if (out.isTTY) out.write('\n');
    },
  };
};

/** Addresses a second. */
const rateOf = (samples: readonly Sample[]): number => {
  const [first, last] = [samples[0], samples.at(-1)];
  const seconds = first && last ? (last.at - first.at) / 1_000 : 0;
  return first && last && seconds > 0 ? (last.done - first.done) / seconds : 0;
};

export const progressText = ({ total, done, pending, waiting }: LookupProgress, rate: number): string => {
  const share = total === 0 ? 1 : done / total;
  const bar = '#'.repeat(Math.floor(share * BAR)).padEnd(BAR, '-');
  const left = done >= total ? '' : rate > 0 ? `, ${duration((total - done) / rate)} left` : '';
  const why = waiting
    ? `; the service takes new addresses again in ${Math.ceil(waiting.ms / 1_000)} s (${withoutControls(waiting.code)})`
    : '';
  return `[${bar}] ${done} of ${total} (${Math.floor(share * 100)} %), ${pending} pending, ${rate.toFixed(1)}/s${left}${why}`;
};

export const duration = (seconds: number): string => {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5_400) return `${Math.ceil(seconds / 60)} min`;
  return `${(seconds / 3_600).toFixed(1)} h`;
};
