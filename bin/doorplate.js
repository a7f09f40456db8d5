#!/usr/bin/env node
// Plain JavaScript, so that an old Node gets this far and can say what is missing.
const major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  process.stderr.write(
    `doorplate needs Node 24, and this is ${process.version}. Use "npm start" or "npx doorplate", which find the one that "npm ci" installed.\n`,
  );
  process.exit(2);
}
const { main } = await import('./main.ts');
await main(process.argv);
