import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { cpuOf } from '../../cli/installation/process-stats.ts';
import { makeMmdb } from '../../test/support/mmdb.ts';
import { makeTestFolder } from '../../test/support/temporary-folder.ts';
import { PARTNERS, savedAnswer, savedPlan } from '../rows/saved-lookups.ts';
import { directoryOfBlocks } from '../support/addresses.ts';
import type { Line, Row } from '../support/bench.ts';
import { startChild } from '../support/child.ts';
import { generatorNote, type Loaded, load } from '../support/load.ts';
import { startProduct } from '../support/product.ts';
import { alternate, compared } from '../support/statistics.ts';

const START_MS = 10_000;

/**
 * `GET /v1/lookup` of a saved result against a bare Fastify route that finds the same address in the same file with `maxmind`: what
 * keys, limits, counting and freshness cost.
 */
export const lookupPeers: Row = {
  name: 'lookups',
  run: async (bench) => {
    const folder = makeTestFolder();
    bench.defer(() => removeDataFolder(folder));
    const file = join(folder, 'companies.mmdb');
    await writeFile(file, companyFile());
    const product = await startProduct(PARTNERS, { ENRICHMENT_DIRECTORY: file });
    bench.defer(product.end);
    await savedAnswer(product);
    const route = startChild('peers/lookup-route.ts', { file });
    bench.defer(route.end);
    const { port } = await route.next<{ port: number }>(START_MS);
    const plan = savedPlan(product, bench.effort);
    const { a, b } = await alternate(
      bench.effort.rounds,
      () => load(plan, product.meters),
      () => load({ ...plan, port }, { server: () => cpuOf(route.pid) }),
    );
    return toLines(a, b);
  },
};

const companyFile = (): Buffer =>
  makeMmdb(
    'Companies',
    Object.fromEntries(
      directoryOfBlocks()
        .split('\n')
        .map((line) => {
          const { cidr, ...record } = JSON.parse(line);
          return [cidr, record];
        }),
    ),
  );

const toLines = (a: readonly Loaded[], b: readonly Loaded[]): Line[] => {
  const rates = (some: readonly Loaded[]) => some.map(({ perSecond }) => perSecond);
  const micros = (some: readonly Loaded[]) =>
    some.map(({ cpuMicros }) => (cpuMicros.server ?? 0) + (cpuMicros.PostgreSQL ?? 0));
  const peer = `Fastify ${versionOf('fastify')} with maxmind ${versionOf('maxmind')}`;
  return [
    {
      row: 'saved lookups to a bare route with maxmind',
      ...compared(
        { of: 'GET /v1/lookup, saved, 64 connections', values: rates(a) },
        { of: peer, values: rates(b) },
        '/s',
      ),
      target: null,
      notes: [
        'The bare route reads the same file, and knows no key, no limit, no usage, no price, no age of a result and no second provider',
        generatorNote(a, b),
      ],
    },
    {
      row: 'CPU of a saved lookup to a bare route with maxmind',
      ...compared(
        { of: 'CPU a lookup, PostgreSQL included', values: micros(a) },
        { of: peer, values: micros(b) },
        ' µs',
      ),
      target: null,
      notes: [],
    },
  ];
};

/** Returns the installed version of a dependency of the product. */
const versionOf = (name: string): string =>
  JSON.parse(readFileSync(createRequire(import.meta.url).resolve(`${name}/package.json`), 'utf8')).version;
