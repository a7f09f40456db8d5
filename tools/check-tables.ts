/**
 * Holds the tables that the SQL of each file names against what its room may read and write. Part of `npm run check`. It
 * reads SQL files, and literals: SQL put together from parts must name a table with its schema in one of them.
 */
import { glob, readFile } from 'node:fs/promises';

interface Access {
  readonly read?: readonly string[];
  readonly write?: readonly string[];
}

const READ_MODELS = 'read.*';
const WORK = 'work.*';

/**
 * The first path that a file begins with is its room; a file in none of them names no table. `read.*` are the read models,
 * which projections alone write; a table of `work` is written by one context.
 */
const ROOMS: readonly (readonly [path: string, access: Access])[] = [
  ['projections/', { read: [READ_MODELS, 'work.lease'], write: [READ_MODELS] }],
  ['queries/', { read: [READ_MODELS, WORK] }],
  ['read-api/', { read: [READ_MODELS, 'work.process'] }],

  ['processors/billing/', { read: [READ_MODELS, 'work.awaited_result'], write: ['work.audit_verdict'] }],
  ['processors/domains/', { read: [READ_MODELS], write: ['work.domain_look'] }],
  [
    'processors/lookup/',
    {
      read: [READ_MODELS],
      write: ['work.awaited_result', 'work.enrichment_truncation', 'work.lookup_use', 'work.provider_day'],
    },
  ],
  ['processors/partners/key-uses.ts', { write: ['work.key_use'] }],
  [
    'processors/partners/',
    { read: [READ_MODELS], write: ['work.login', 'work.login_network', 'work.user_password'] },
  ],
  ['processors/reveals/', { read: [READ_MODELS], write: ['work.awaited_result', 'work.arrived_result'] }],
  ['processors/webhooks/', { read: [READ_MODELS], write: ['work.delivery_claim', 'work.webhook_slot'] }],
  ['processors/checkpoints.ts', { read: ['work.lease'], write: ['work.processor'] }],
  ['processors/claims.ts', { write: ['work.claim'] }],
  ['processors/consumers.ts', { read: ['read.projection', 'work.processor'] }],
  ['processors/expiring-ids.ts', { write: ['work.expiring'] }],
  ['processors/', { read: [READ_MODELS] }],

  ['platform/day-keys.ts', { write: ['work.keyring'] }],
  ['platform/keyring.ts', { write: ['work.keyring'] }],
  ['platform/heartbeat.ts', { write: ['work.lease', 'work.process'] }],
  ['platform/release.ts', { read: ['work.process'] }],
  ['platform/kept-out-exchange.ts', { write: ['work.kept_out'] }],
  ['platform/only-one.ts', { write: ['work.only_one_*'] }],
  ['platform/rate-blocks.ts', { read: ['work.rate'] }],
  ['platform/rate-limit.ts', { write: ['work.rate'] }],
  ['analytics/analysts.ts', { write: ['work.only_one_grant'] }],
];

const LITERAL = /`(?:[^`\\]|\\[\s\S])*`|'(?:[^'\\\n]|\\.)*'/g;
const STATEMENT = /\b(select|insert into|update|delete from|truncate|lock table)\b/;
const WRITTEN = /\b(?:insert into|update|delete from|truncate|lock table) (?:only )?((?:read|work)\.\w+)/g;
const NAMED = /\b((?:read|work)\.[a-z]\w*)\b(?![(\w])/g;

const covers = (allowed: readonly string[] | undefined, table: string): boolean =>
  allowed?.some((one) => one === table || (one.endsWith('*') && table.startsWith(one.slice(0, -1)))) ?? false;

const problemsIn = (file: string, text: string): string[] => {
  const [, access = {}] = ROOMS.find(([path]) => file.startsWith(path)) ?? [];
  const problems = new Set<string>();
  const statements = file.endsWith('.sql') ? [text] : [...text.matchAll(LITERAL)].map(([literal]) => literal);
  for (const statement of statements) {
    const sql = statement.replaceAll(/\s+/g, ' ').toLowerCase();
    if (!STATEMENT.test(sql)) continue;
    const written = new Set([...sql.matchAll(WRITTEN)].map(([, table = '']) => table));
    for (const table of written)
      if (!covers(access.write, table)) problems.add(`${file} may not write ${table}`);
    for (const [, table = ''] of sql.matchAll(NAMED)) {
      if (written.has(table) || covers(access.write, table) || covers(access.read, table)) continue;
      problems.add(`${file} may not read ${table}`);
    }
  }
  return [...problems];
};

const LAYERS =
  '{analytics,bin,commands,dashboard,domain,event-store,http,platform,processors,projections,queries,read-api,write-api}';
const found: string[] = [];
let files = 0;
for await (const file of glob(`${LAYERS}/**/*.{ts,sql}`)) {
  files += 1;
  found.push(...problemsIn(file, await readFile(file, 'utf8')));
}
for (const problem of found.sort()) process.stderr.write(`${problem}\n`);
process.stdout.write(`${files} files checked for the tables that they name\n`);
if (found.length > 0) process.exitCode = 1;
