/**
 * Finds files of over 200 lines that do not say why they are one file, and functions of over 60 lines (TypeScript only);
 * CONTRIBUTING.md has the rule. Test files are as long as their subject. Part of `npm run check`.
 */
import { glob, readFile } from 'node:fs/promises';
import { parseFile, type SourceFile } from './syntax-tree.ts';

const MOST_IN_FILE = 200;
const MOST_IN_FUNCTION = 60;
/** Packages, what is built or generated, and tests. */
const NOT_CHECKED =
  /^test\/|(^|\/)(node_modules|dist)\/|^clients\/(python\/tests\/|typescript\/src\/generated\.ts$|python\/src\/doorplate_client\/types\.py$)/;
/** How such a file begins its reason. */
const REASON = /One (file|measurement in one file)\b|longer than 200 lines/;
const FUNCTIONS = new Set(['ArrowFunctionExpression', 'FunctionDeclaration', 'FunctionExpression']);

const lineOf = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;

const longFile = (file: string, text: string): string[] => {
  const lines = lineOf(text, text.length) - 1;
  return lines > MOST_IN_FILE && !REASON.test(text) ? [`${file}: ${lines} lines and no reason`] : [];
};

const longFunctions = (file: string, { text, walk }: SourceFile): string[] => {
  const problems: string[] = [];
  walk((node) => {
    const { type = '', start = 0, end = 0 } = node as { type?: string; start?: number; end?: number };
    if (!FUNCTIONS.has(type)) return;
    const first = lineOf(text, start);
    const length = lineOf(text, end) - first + 1;
    if (length > MOST_IN_FUNCTION) problems.push(`${file}:${first}: a function of ${length} lines`);
  });
  return problems;
};

const problemsIn = async (file: string): Promise<string[]> => {
  if (file.endsWith('.py')) return longFile(file, await readFile(file, 'utf8'));
  const source = await parseFile(file);
  return [...longFile(file, source.text), ...longFunctions(file, source)];
};

const files: string[] = [];
for await (const file of glob('**/*.{ts,py}')) if (!NOT_CHECKED.test(file)) files.push(file);
const problems = (await Promise.all(files.toSorted().map(problemsIn))).flat();
process.stdout.write(`${files.length} files checked for their length\n`);
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exit(problems.length === 0 ? 0 : 1);
