import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const VERIFIER = fileURLToPath(new URL('../../docs/examples/verify-ledger.mjs', import.meta.url));

/** Runs the independent verifier over entries as `--entries` prints them. */
export const verify = async (
  partnerId: string,
  entries: readonly object[],
  anchor?: string,
): Promise<{ code: number | null; stdout: string }> => {
  const child = spawn(process.execPath, [VERIFIER, partnerId, ...(anchor === undefined ? [] : [anchor])], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  // It exits at the first difference, perhaps before all of its input was written.
  child.stdin.on('error', () => undefined);
  child.stdin.end(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
  const [code] = await once(child, 'close');
  return { code: code as number | null, stdout };
};
