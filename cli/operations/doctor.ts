import type { Command } from 'commander';
import { print, printable, styled } from '../print.ts';
import { Refused } from '../session.ts';
import type { Check } from './check-result.ts';
import { examine } from './checks.ts';

/** Adds `doorplate doctor`. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description(
      'check configuration, stores, keys, clock, names, disk, ports and proxy, before a start or beside it',
    )
    .option('--json', 'print JSON', false)
    .action(async ({ json }: { json: boolean }) => {
      const checks: Check[] = [];
      for await (const check of examine(process.env, (name) => announce(name, json))) {
        checks.push(check);
        if (!json) process.stdout.write(`${lineOf(check)}\n`);
      }
      const failed = checks.filter(({ ok }) => !ok).length;
      if (json) print({ ok: failed === 0, checks }, true);
      if (failed > 0) throw new Refused(`${failed} of ${checks.length} checks failed`);
      if (!json) process.stdout.write(`${checks.length} checks passed\n`);
    });
}

/** The check that runs, until its line replaces this one. */
function announce(name: string, json: boolean): void {
  if (!json && process.stderr.isTTY) process.stderr.write(`… ${name}\r`);
}

const NAME_WIDTH = 20;

function lineOf({ name, ok, detail, fix }: Check): string {
  const mark = ok ? styled('green', 'ok  ') : styled('red', 'FAIL');
  const lines = [`${mark}  ${name.padEnd(NAME_WIDTH)}  ${printable(detail)}`];
  if (fix !== null)
    lines.push(`      ${' '.repeat(NAME_WIDTH)}  ${styled('bold', 'fix:')} ${printable(fix)}`);
  return lines.join('\n');
}
