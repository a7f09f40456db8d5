/** Builds `web/pixel/dist/a.js`, which is committed so that a start needs no build: `npm run build:pixel`. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export const PIXEL_FILE = fileURLToPath(new URL('./dist/a.js', import.meta.url));

/** Builds the script from the current sources. */
export async function buildPixel(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('./a.ts', import.meta.url))],
    bundle: true,
    minify: true,
    format: 'iife',
    target: 'es2018',
    write: false,
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error('esbuild made nothing');
  return file.contents;
}

if (import.meta.main) writeFileSync(PIXEL_FILE, await buildPixel());
