import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import type { Runtime } from '../../bin/runtime.ts';
import type { Bench, Line, Row } from '../support/bench.ts';
import { type Product, startProduct } from '../support/product.ts';
import { fillSessions } from '../support/sessions.ts';
import { alternate, median, medianRatio } from '../support/statistics.ts';
import { createTracker } from '../support/tracking.ts';

const SMALL_SIZE = 10_000;
const REVEALED_ONE_IN = 10;
const COMPANIES = 500;
const LOADS = 15;

const PAGES = [
  ['home', '/dashboard'],
  ['home, 30 days', '/dashboard?period=30d'],
  ['companies', '/dashboard/companies?period=30d'],
  ['sessions', '/dashboard/sessions'],
  ['sessions of a country, not revealed', '/dashboard/sessions?period=30d&country=unknown&revealed=no'],
  ['usage', '/dashboard/usage?period=30d'],
] as const;

interface Filled {
  readonly product: Product;
  readonly cookie: string;
}

/**
 * The dashboard's pages with few and with many sessions in the read model: the median time from request to the last byte, one page
 * after the other. A quarter of the sessions are the partner's, and one in ten of those is revealed. Rows are written to the read
 * models' tables directly.
 */
export const dashboardMillionRow: Row = {
  name: 'dashboard-million',
  run: async (bench) => {
    const few = await filled(bench, SMALL_SIZE);
    const many = await filled(bench, bench.effort.saved);
    try {
      return await measure(bench, few, many);
    } finally {
      await few.product.end();
      await many.product.end();
    }
  },
};

async function filled(bench: Bench, count: number): Promise<Filled> {
  bench.say(`making ${count} sessions`);
  const product = await startProduct(1);
  bench.defer(product.end);
  const tracker = await createTracker(product);
  await product.beside(async (runtime) => {
    await fillSessions(runtime, tracker, count);
    await fillReveals(runtime, tracker);
  });
  return { product, cookie: await logIn(product) };
}

async function fillReveals({ databaseUrl }: Pick<Runtime, 'databaseUrl'>, tracker: string): Promise<void> {
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  try {
    await db.query(
      `insert into read.reveal (reveal_id, session_id, tracker_id, partner_id, user_id, created_at, expires_at, completed_at,
                                billable, result, company_key, last_revision, last_position)
       select gen_random_uuid(), session_id, tracker_id, partner_id, 'nobody', first_seen_at, expires_at, first_seen_at, true,
              json_build_object('match_type', 'company', 'company_found', true, 'network', null,
                                'company', json_build_object('name', 'Company ' || position % $2)),
              md5(lower('Company ' || position % $2)), 1, position
       from read.session where tracker_id = $1 and (position / 4) % $3 = 0`,
      [tracker, COMPANIES, REVEALED_ONE_IN],
    );
    await db.query(
      `insert into read.reveal_unit (reveal_id, partner_id, tracker_id, user_id, completed_at, units, position)
       select reveal_id, partner_id, tracker_id, user_id, completed_at, 1, last_position from read.reveal`,
    );
    await db.query('vacuum (analyze) read.reveal');
    await db.query('vacuum (analyze) read.reveal_unit');
    await db.query('checkpoint');
  } finally {
    await db.end();
  }
}

async function logIn({ service }: Product): Promise<string> {
  const made = JSON.parse((await service.cli('user', 'create', '--partner', 'demo', 'Ada', '--json')).stdout);
  const again = 'three wise words';
  const first = await send(service.url, '/dashboard/login', { name: 'Ada', password: made.password });
  const page = await (
    await fetch(`${service.url}/dashboard/password`, { headers: { cookie: first } })
  ).text();
  const csrf = /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';
  return send(
    service.url,
    '/dashboard/password',
    { csrf, current: made.password, password: again, again },
    first,
  );
}

/** Sends a form. @returns the cookie that its answer sets */
async function send(
  url: string,
  path: string,
  form: Readonly<Record<string, string>>,
  cookie = '',
): Promise<string> {
  const answer = await fetch(url + path, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie },
    body: new URLSearchParams(form),
  });
  const [set = ''] = answer.headers.getSetCookie();
  if (answer.status !== 303) throw new Error(`${path} answered ${answer.status}`);
  return set.split(';', 1)[0] ?? '';
}

async function measure({ effort }: Bench, few: Filled, many: Filled): Promise<readonly Line[]> {
  const name = effort.saved.toLocaleString('en');
  const lines: Line[] = [];
  for (const [page, path] of PAGES) {
    const { a, b } = await alternate(
      effort.rounds,
      () => timeOf(many, path),
      () => timeOf(few, path),
    );
    lines.push({
      row: `page ${page} with ${name} sessions`,
      ratio: medianRatio(a, b),
      target: { atMost: 1.3 },
      a: { of: `median with ${name} sessions`, value: median(a), unit: ' ms' },
      b: { of: `median with ${SMALL_SIZE.toLocaleString('en')} sessions`, value: median(b), unit: ' ms' },
      notes: [],
    });
  }
  return lines;
}

async function timeOf({ product, cookie }: Filled, path: string): Promise<number> {
  const times: number[] = [];
  while (times.length < LOADS) {
    const began = performance.now();
    const answer = await fetch(product.service.url + path, { headers: { cookie } });
    const text = await answer.text();
    if (answer.status === 429) {
      await setTimeout(Number(answer.headers.get('retry-after')) * 1_000);
      continue;
    }
    if (answer.status !== 200 || !text.includes('<h1>')) throw new Error(`${path} answered ${answer.status}`);
    times.push(performance.now() - began);
  }
  return median(times);
}
