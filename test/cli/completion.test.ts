import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { doorplateHere } from '../support/doorplate.ts';

it.each([
  ['doorplate audit b', 'billing'],
  ['doorplate key create --part', '--partner'],
  ['doorplate user create --role ', 'owner member read-only'],
  ['doorplate completion z', 'zsh'],
])('completes %s in bash', async (typed, words) => {
  const { stdout: script } = await doorplateHere(['completion', 'bash'], {});
  const test = `${script}
    COMP_WORDS=(${typed}${typed.endsWith(' ') ? " ''" : ''}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _doorplate; echo "\${COMPREPLY[*]}"`;
  expect(execFileSync('bash', ['-c', test], { encoding: 'utf8' }).trim()).toBe(words);
});

it('prints a script for fish with each command and its description', async () => {
  const { stdout } = await doorplateHere(['completion', 'fish'], {});
  expect(stdout).toContain(
    "complete -c doorplate -f -n '__fish_use_subcommand' -a audit -d 'proofs that the books are right'",
  );
});
