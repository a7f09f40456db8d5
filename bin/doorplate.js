#!/usr/bin/env -S node --max-semi-space-size=16 --disable-warning=ExperimentalWarning
// Plain JavaScript, so that an old Node can still run this and report the required version.
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';

const major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  process.stderr.write(
    `doorplate needs Node 24, and this is ${process.version}. Use "npm start" or "npx doorplate", which find the one that "npm ci" installed.\n`,
  );
  process.exit(2);
}
// On a large machine V8 lets the heap grow to several times the live size before collecting; memory is scarcer here.
setFlagsFromString('--heap-growing-percent=50');
const { cacheCompiledCode } = await import('../platform/compile-cache.js');
cacheCompiledCode(fileURLToPath(new URL('../node_modules/.cache/doorplate', import.meta.url)));
const { main } = await import('../cli/main.ts');
await main(process.argv);
