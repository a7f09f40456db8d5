/**
 * Checks `.github/workflows` by GitHub's own parser, and that every action is pinned by a digest with its release beside it. Part of
 * `npm run check`.
 */
import { glob, readFile } from 'node:fs/promises';
import { registerHooks } from 'node:module';
import { basename } from 'node:path';

// The parser was built for bundlers: it imports its JSON files without saying that they are.
registerHooks({
  load: (url, context, next) =>
    next(url, url.endsWith('.json') ? { ...context, importAttributes: { type: 'json' } } : context),
});
const { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } = await import(
  '@actions/workflow-parser'
);

/** Any line that may name an action, so that one written in another way is told as well. */
const USES = /^.*\buses\b["']?\s*:.*$/gm;
const PINNED = /^(?:- )?uses: [\w-]+\/[\w./-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/;

const problemsIn = async (file: string): Promise<string[]> => {
  const content = await readFile(file, 'utf8');
  const { context, value } = parseWorkflow({ name: basename(file), content }, new NoOperationTraceWriter());
  if (value !== undefined) await convertWorkflowTemplate(context, value);
  const errors = context.errors.getErrors().map(({ message }) => message);
  const unpinned = [...content.matchAll(USES)]
    .map(([line]) => line.trim())
    .filter((line) => !PINNED.test(line));
  return [...errors, ...unpinned.map((line) => `not pinned by a digest: ${line}`)].map(
    (why) => `${file}: ${why}`,
  );
};

const files = await Array.fromAsync(glob('.github/workflows/*.{yml,yaml}'));
if (files.length === 0) throw new Error('there are no workflows');
const problems = (await Promise.all(files.map(problemsIn))).flat();
for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0) process.exit(1);
process.stdout.write(`${files.length} workflows are valid\n`);
