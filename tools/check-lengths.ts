/**
 * Finds files of over 200 lines that do not say why they are one file, and functions of over 60 lines; CONTRIBUTING.md has the
 * rule. Test files are as long as their subject. Part of `npm run check`.
 */
import { glob } from 'node:fs/promises';
import { parseFile } from './syntax-tree.ts';

const MOST_IN_FILE = 200;
const MOST_IN_FUNCTION = 60;
/** The clients are packages of their own. */
const NOT_CHECKED = /^(node_modules|test|clients|pixel\/dist)\//;
/** How such a file begins its reason. */
const REASON = /One (file|measurement in one file)\b|longer than 200 lines/;
const FUNCTIONS = new Set(['ArrowFunctionExpression', 'FunctionDeclaration', 'FunctionExpression']);

const problemsIn = async (file: string): Promise<string[]> => {
  const { text, walk } = await parseFile(file);
  const lineOf = (offset: number): number => text.slice(0, offset).split('\n').length;
  const problems: string[] = [];
  const lines = lineOf(text.length) - 1;
  if (lines > MOST_IN_FILE && !REASON.test(text)) problems.push(`${file}: ${lines} lines and no reason`);
  walk((node) => {
    const { type = '', start = 0, end = 0 } = node as { type?: string; start?: number; end?: number };
    if (!FUNCTIONS.has(type)) return;
    const [first, last] = [lineOf(start), lineOf(end)];
    const length = last - first + 1;
    if (length > MOST_IN_FUNCTION) problems.push(`${file}:${first}: a function of ${length} lines`);
  });
  return problems;
};

const files: string[] = [];
for await (const file of glob('**/*.ts')) if (!NOT_CHECKED.test(file)) files.push(file);
const problems = (await Promise.all(files.toSorted().map(problemsIn))).flat();
process.stdout.write(`${files.length} files checked for their length\n`);
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exit(problems.length === 0 ? 0 : 1);
