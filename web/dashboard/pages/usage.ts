import { isoTime } from '../../../domain/kernel/time.ts';
import type { Reply } from '../../../http/contract/route.ts';
import { listUnitsByActor } from '../../../queries/billing/reveal-units.ts';
import { type Allowance, readAllowance } from '../../../queries/lookup/allowances.ts';
import { type KeyRow, listActors, listLatestKeys } from '../../../queries/partners/partners.ts';
import type { LookupDay } from '../../../read-api/usage/partner-usage.ts';
import { csvAnswer } from '../answers.ts';
import { listTrackers, type PageContext } from '../api.ts';
import { count, gauge, html, namesOfTrackers, nothingYet, panel, table, tiles } from '../components.ts';
import { show } from '../layout.ts';
import { scopePickers } from '../pickers.ts';
import { amountCells, amountHeads, moneyText, priceNote } from '../price.ts';
import { get, type PageRoute } from '../routes.ts';
import { fileScope, linkTo, periodBefore } from '../scope.ts';
import { lookupChart, OUTCOME_GROUPS, POLLS, readLookups, splitAt, sum, websiteTable } from './overview.ts';

const PATH = '/dashboard/usage';

/** What keys and websites have used, and how near their limits are. */
export const usagePages: readonly PageRoute[] = [
  get(PATH, usage),
  get(`${PATH}.csv`, csv),
  get(`${PATH}/units.csv`, unitsCsv),
];

const keysOf = ({ reads, user, request }: PageContext): Promise<readonly KeyRow[]> =>
  listLatestKeys(reads.db, user.partner_id, isoTime(request.receivedAt));

async function usage(page: PageContext): Promise<Reply> {
  const { reads, user, scope, request } = page;
  const { period, trackerId } = scope;
  const before = periodBefore(period);
  // Figures of one page agree.
  await reads.waitForHead(['tracker-usage', 'sessions', 'reveal-units'])();
  const [{ trackers, failed }, allLookups, days, keys, allowance, byActor] = await Promise.all([
    listTrackers(page),
    readLookups(page, { from: before.from, to: period.to }),
    reads.trackerDays(user.partner_id, trackerId, period),
    keysOf(page),
    readAllowance(reads.pool, user.partner_id, request.receivedAt),
    unitsByActor(page),
  ]);
  const units = sum(days, (row) => row.units);
  const [lookupsBefore, lookups] = splitAt(allLookups, period);
  const all = sum(lookups, ({ requests }) => requests);
  const saved = sum(lookups, ({ cache_hits }) => cache_hits);
  return show(page, {
    title: 'Usage',
    section: 'Usage and billing',
    refused: failed,
    pickers: scopePickers(page, trackers),
    actions: html`<a class="button quiet" href="${linkTo(`${PATH}.csv`, page.scope.query)}">Download as CSV</a>`,
    content: html`${tiles([
      {
        name: 'Lookup requests',
        value: count(all),
        now: all,
        before: sum(lookupsBefore, ({ requests }) => requests),
      },
      {
        name: 'Answered from saved results',
        value: all === 0 ? '–' : `${Math.round((saved / all) * 100)} %`,
      },
      { name: 'Sessions', value: count(sum(days, ({ sessions }) => sessions)) },
      { name: 'Units', value: count(units) },
      ...(reads.price === null ? [] : [{ name: 'At today’s price', value: moneyText(reads.price, units) }]),
    ])}
    ${priceNote(reads.price)}
    ${allowancePanel(keys, allowance)}
    ${lookups.length > 0 && lookupChart(period.days, lookups)}
    ${byKey(keys, lookups)}
    ${websiteTable(page, days, namesOfTrackers(trackers), ['sessions', 'visits', 'reveals', 'units'])}
    ${unitsTable(page, byActor)}`,
  });
}

/** Limits as gauges: those of today, whatever period the page shows. */
function allowancePanel(keys: readonly KeyRow[], { reserved, pending }: Allowance) {
  const usable = keys.filter(({ revoked_at }) => revoked_at === null);
  if (usable.length === 0) return null;
  const capped = usable
    .map((key) => ({ ...key, used: reserved.get(key.key_id) ?? 0 }))
    .toSorted((a, b) => b.used - a.used);
  const pendingLimit = Math.max(...usable.map(({ pending_enrichments }) => pending_enrichments));
  return panel(
    'Allowances today (UTC)',
    html`<h3>New enrichments by key</h3>
    ${capped.slice(0, GAUGES_SHOWN).map(({ name, used, new_enrichments_per_day }) => gauge(name, used, new_enrichments_per_day))}
    ${capped.length > GAUGES_SHOWN && html`<p class="soft">The ${GAUGES_SHOWN} keys that have used most are shown.</p>`}
    <h3>Pending enrichments, all keys together</h3>${gauge('Pending', pending, pendingLimit)}
    <p class="soft">Above a limit, new enrichments are refused; saved addresses are answered all the same. A refresh of an old result counts as well.
      <a href="/dashboard/keys">The keys and their limits</a></p>`,
  );
}

const GAUGES_SHOWN = 10;

const requestsOf = (rows: readonly LookupDay[], outcomes: readonly string[]): number =>
  sum(
    rows.filter(({ outcome }) => outcomes.includes(outcome)),
    ({ requests }) => requests,
  );

function byKey(keys: readonly KeyRow[], lookups: readonly LookupDay[]) {
  const byId = Map.groupBy(lookups, ({ key_id }) => key_id);
  const names = new Map(keys.map(({ key_id, name }) => [key_id, name]));
  const rows = [...byId]
    .map(([key_id, of]) => ({ key_id, of, all: sum(of, ({ requests }) => requests) }))
    .toSorted((a, b) => b.all - a.all);
  if (rows.length === 0) {
    return nothingYet(
      'No lookups in this period',
      html`Lookups are requests to the API. <a href="/dashboard/lookup">Look up an address</a> to see one.`,
    );
  }
  return table(
    'Lookup requests by key, the busiest first',
    ['Key', 'Requests', ...OUTCOME_GROUPS.map(({ name }) => name), 'Polls', 'From saved results'],
    rows.map(({ key_id, of, all }) => [
      html`<a href="/dashboard/keys/${key_id}">${names.get(key_id) ?? key_id}</a>`,
      count(all),
      ...OUTCOME_GROUPS.map(({ outcomes }) => count(requestsOf(of, outcomes))),
      count(requestsOf(of, POLLS)),
      count(sum(of, ({ cache_hits }) => cache_hits)),
    ]),
    { numeric: [1, 2, 3, 4, 5, 6, 7], minor: [2, 3, 4, 5, 6], isWhole: true },
  );
}

/** Units by the key or the user that asked, of all websites, with names. */
async function unitsByActor({ reads, user, request, scope: { period } }: PageContext) {
  await reads.waitForHead(['reveal-units'])();
  const [rows, actors] = await Promise.all([
    listUnitsByActor(reads.db, user.partner_id, period.from, period.to),
    listActors(reads.db, user.partner_id, isoTime(request.receivedAt)),
  ]);
  const names = new Map(actors.map(({ id, name }) => [id, name]));
  return rows.map(({ key_id, user_id, units, completed }) => {
    const id = key_id ?? user_id ?? '';
    const kind = key_id === null ? 'user' : 'key';
    return { kind, id, name: names.get(id) ?? (key_id === null ? 'a former user' : id), units, completed };
  });
}
type UnitsByActor = Awaited<ReturnType<typeof unitsByActor>>;

const unitsTable = ({ scope }: PageContext, rows: UnitsByActor) =>
  rows.length > 0 &&
  html`${table(
    'Units by key and by user, all websites',
    ['Asked by', 'Kind', 'Reveals completed', 'Units'],
    rows.map(({ kind, id, name, units, completed }) => [
      kind === 'key' ? html`<a href="/dashboard/keys/${id}">${name}</a>` : name,
      kind,
      count(completed),
      count(units),
    ]),
    { numeric: [2, 3], isWhole: true },
  )}<p><a class="button quiet" href="${linkTo(`${PATH}/units.csv`, scope.query)}">Download these units as CSV</a></p>`;

async function unitsCsv(page: PageContext): Promise<Reply> {
  const rows = await unitsByActor(page);
  const { price } = page.reads;
  return csvAnswer(
    `doorplate-units-${fileScope(page.scope)}.csv`,
    ['kind', 'id', 'name', 'completed_reveals', 'units', ...amountHeads(price)],
    rows.map(({ kind, id, name, completed, units }) => [
      kind,
      id,
      name,
      completed,
      units,
      ...amountCells(price, units),
    ]),
  );
}

async function csv(page: PageContext): Promise<Reply> {
  const { period } = page.scope;
  const [lookups, keys] = await Promise.all([readLookups(page, period), keysOf(page)]);
  const names = new Map(keys.map(({ key_id, name }) => [key_id, name]));
  return csvAnswer(
    `doorplate-usage-${fileScope(page.scope)}.csv`,
    ['day', 'key_id', 'key', 'outcome', 'requests', 'from_saved_results'],
    lookups.map((row) => [
      row.day,
      row.key_id,
      names.get(row.key_id) ?? null,
      row.outcome,
      row.requests,
      row.cache_hits,
    ]),
  );
}
