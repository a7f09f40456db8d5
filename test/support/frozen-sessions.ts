import { onTestFinished } from 'vitest';

/**
 * Stops PostgreSQL's processes of these sessions, whose connections then never answer and are not closed.
 * @returns a function that ends it, as the test's end does
 */
export const freezeSessions = (pids: readonly number[]): (() => void) => {
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => (pid: number) => {
    try {
      process.kill(pid, name);
    } catch {
      // It has ended meanwhile.
    }
  };
  const thaw = () => pids.forEach(signal('SIGCONT'));
  pids.forEach(signal('SIGSTOP'));
  onTestFinished(thaw);
  return thaw;
};
