/** Shows how far a long command is. */
export interface ProgressBar {
  /** `done`: of the total. */
  update(done: number): void;
  /** Removes the bar from the terminal. */
  end(): void;
}

const BAR_WIDTH = 24;
const REDRAW_MS = 100;
/** Between two lines where stderr is no terminal, as in a job's log. */
const LINE_MS = 10_000;

/**
 * Begins a progress bar on stderr: one line that is redrawn on a terminal, elsewhere a line each ten seconds.
 * `what`: the work, such as `exporting sessions`. `total`: null if it is not known.
 */
export function progressBar(what: string, total: number | null): ProgressBar {
  const isTerminal = process.stderr.isTTY === true;
  let shownAt = isTerminal ? Number.NEGATIVE_INFINITY : performance.now();
  return {
    update: (done) => {
      const now = performance.now();
      if (now - shownAt < (isTerminal ? REDRAW_MS : LINE_MS)) return;
      shownAt = now;
      const text = `${what}: ${count(done)}${total === null ? '' : ` of ${count(total)}`}`;
      process.stderr.write(isTerminal ? `\r${bar(done, total)}${text}\u001b[K` : `doorplate: ${text}\n`);
    },
    end: () => {
      if (isTerminal) process.stderr.write('\r\u001b[K');
    },
  };
}

const count = (value: number): string => value.toLocaleString('en-US');

function bar(done: number, total: number | null): string {
  if (total === null || total === 0) return '';
  const filled = Math.round((Math.min(done, total) / total) * BAR_WIDTH);
  return `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}] `;
}
