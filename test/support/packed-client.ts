/** The TypeScript client as a partner gets it: packed and installed in a separate project without a registry. */
import { execFile, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type * as DoorplateClient from '../../clients/typescript/src/index.ts';
import { reapProcess } from './reaped.ts';

const run = promisify(execFile);

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PACKAGE = join(ROOT, 'clients/typescript');
/** The compilers that a partner may have: the one that builds the package, and the latest. */
const OWN_COMPILER = join(PACKAGE, 'node_modules/typescript/bin/tsc');
const LATEST_COMPILER = join(ROOT, 'bench/checks/node_modules/typescript-7/bin/tsc');
/** `npm run check` installs the latest. */
const COMPILERS = [OWN_COMPILER, LATEST_COMPILER].filter(existsSync);
const compileWith = (compiler: string, args: string[], cwd: string) =>
  run(process.execPath, [compiler, ...args], { cwd });

const TSCONFIG = {
  compilerOptions: {
    target: 'es2022',
    lib: ['es2022'],
    module: 'nodenext',
    types: ['node'],
    outDir: 'js',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    // The compiler checks the package's own declarations as well.
    skipLibCheck: false,
  },
  include: ['*.ts'],
};

export interface ProgramRun {
  readonly child: ReturnType<typeof spawn>;
  /** The lines of JSON that it has written so far. */
  lines(): Record<string, unknown>[];
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>;
}

export interface PartnerProject {
  readonly files: readonly string[];
  readonly installed: readonly string[];
  readonly client: typeof DoorplateClient;
  /** Compiles the examples and the README's snippets and returns the compilers' errors. */
  compile(): Promise<string>;
  start(name: string, args: readonly string[], env: Readonly<Record<string, string>>): ProgramRun;
  remove(): void;
}

/** The snippets of the README, in their order, as one program. */
const snippets = (): string => {
  const text = readFileSync(join(PACKAGE, 'README.md'), 'utf8');
  return [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => `{}\n${code}`).join('\n');
};

export const installPackedClient = async (): Promise<PartnerProject> => {
  const folder = mkdtempSync(join(tmpdir(), 'doorplate-test-partner-'));
  const npm = (args: string[], cwd: string) =>
    run('npm', [...args, '--cache', join(folder, 'npm-cache')], {
      cwd,
      env: { ...process.env, npm_config_offline: 'true' },
    });

  // Like `npm pack` there, but writes nothing to the checkout.
  const staged = join(folder, 'package');
  for (const name of ['package.json', 'README.md', 'LICENSE', 'examples']) {
    cpSync(join(PACKAGE, name), join(staged, name), { recursive: true });
  }
  await compileWith(OWN_COMPILER, ['--project', PACKAGE, '--outDir', join(staged, 'dist')], staged);
  const packed = await npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], staged);
  const [{ filename, files }] = JSON.parse(packed.stdout);
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'partner', private: true, type: 'module' }),
  );
  await npm(['install', `./${filename}`], folder);
  const installed = readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'));
  const client = await import(
    pathToFileURL(join(folder, 'node_modules/doorplate-client/dist/index.js')).href
  );

  return {
    files: files.map(({ path }: { path: string }) => path),
    installed,
    client,
    compile: async () => {
      mkdirSync(join(folder, 'node_modules/@types'), { recursive: true });
      symlinkSync(join(ROOT, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'));
      const examples = join(folder, 'node_modules/doorplate-client/examples');
      for (const name of readdirSync(examples)) {
        writeFileSync(join(folder, name), readFileSync(join(examples, name)));
      }
      writeFileSync(join(folder, 'readme.ts'), snippets());
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
      const said = COMPILERS.map((compiler) =>
        compileWith(compiler, [], folder).then(
          () => '',
          (failed: { stdout: string; stderr: string }) => `${compiler}\n${failed.stdout}${failed.stderr}`,
        ),
      );
      return (await Promise.all(said)).join('');
    },
    start: (name, args, env) => {
      const child = spawn(process.execPath, [join(folder, 'js', `${name}.js`), ...args], {
        cwd: folder,
        env: { PATH: process.env.PATH, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      if (child.pid !== undefined) reapProcess(child.pid);
      let [stdout, stderr] = ['', ''];
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        stdout += text;
      });
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
      });
      return {
        child,
        lines: () =>
          stdout
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line)),
        ended: new Promise((resolve) => child.on('close', (code) => resolve({ code, stderr }))),
      };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
};
