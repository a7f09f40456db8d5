/**
 * The TypeScript client as a package that this service serves itself: a name alone would let `npx` run whatever somebody has
 * registered under it. Built from its sources, without types, when it is first asked for.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { gzipSync } from 'node:zlib';
import type { PublicRoute } from '../contract/route.ts';
import { staticRoute } from '../contract/static-route.ts';

const FOLDER = new URL('../../clients/typescript/', import.meta.url);
const textOf = (path: string): string => readFileSync(new URL(path, FOLDER), 'utf8');

const manifest = JSON.parse(textOf('package.json'));

/** Named for the version, because `npx` keeps what it has installed from an address. */
export const CLIENT_PACKAGE_PATH = `/docs/doorplate-client-${manifest.version}.tgz`;

const SECONDS = 86_400;

export const clientPackageRoute = (): PublicRoute =>
  staticRoute(CLIENT_PACKAGE_PATH, SECONDS, () => ({
    body: gzipSync(archive(packedFiles())),
    headers: { 'content-type': 'application/gzip' },
  }));

/** The files of the package by their paths. */
function packedFiles(): ReadonlyMap<string, string> {
  const sources = readdirSync(new URL('src/', FOLDER), { recursive: true, encoding: 'utf8' });
  return new Map([
    ['package.json', JSON.stringify(packedManifest(), null, 2)],
    ...['README.md', 'LICENSE'].map((name) => [name, textOf(name)] as const),
    ...sources
      .filter((path) => path.endsWith('.ts'))
      .map((path) => [`dist/${path.replace(/\.ts$/, '.js')}`, scriptOf(textOf(`src/${path}`))] as const),
  ]);
}

/** Without what needs a registry: the packages that `mcp` needs are optional peers, which npm leaves out. */
function packedManifest() {
  const { optionalDependencies: peers, devDependencies: _, scripts: _scripts, ...kept } = manifest;
  const optional = Object.fromEntries(Object.keys(peers).map((name) => [name, { optional: true }]));
  return {
    ...kept,
    exports: { '.': './dist/index.js', './package.json': './package.json' },
    peerDependencies: peers,
    peerDependenciesMeta: optional,
  };
}

/** Each import of the sources names its file, on one line with its quotes. */
const scriptOf = (source: string): string =>
  stripTypeScriptTypes(source).replaceAll(/(from |import\()'(\.[^']*)\.ts'/g, "$1'$2.js'");

const BLOCK = 512;
const MODE = 0o644;
const MODE_OF_PROGRAM = 0o755;

/** An archive in the format ustar (POSIX.1-1988), below the folder `package`, as npm wants it. */
function archive(files: ReadonlyMap<string, string>): Buffer {
  const parts = [...files].flatMap(([path, text]) => {
    const content = Buffer.from(text);
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
    return [head(`package/${path}`, content), content, padding];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

function head(path: string, content: Buffer): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0');
  block.write(path, 0, 100);
  block.write(octal(content.subarray(0, 2).toString() === '#!' ? MODE_OF_PROGRAM : MODE, 7), 100);
  block.write(`${octal(0, 7)}\0${octal(0, 7)}\0${octal(content.length, 11)}\0${octal(0, 11)}\0`, 108);
  // The checksum counts its own field as spaces.
  block.fill(' ', 148, 156);
  block.write('0', 156);
  block.write('ustar\0', 257);
  block.write('00', 263);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148);
  return block;
}
