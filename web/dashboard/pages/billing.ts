import { isoTime } from '../../../domain/kernel/time.ts';
import type { Reply } from '../../../http/contract/route.ts';
import { shellQuoted } from '../../../http/contract/shell-text.ts';
import { CLIENT_PACKAGE_PATH } from '../../../http/docs/client-package.ts';
import type { createRequestedAudits, Verdict } from '../../../processors/billing/requested-audits.ts';
import { listMonths, type UnitsOfMonth } from '../../../queries/billing/reveal-units.ts';
import { listActors } from '../../../queries/partners/partners.ts';
import type { LedgerPage } from '../../../read-api/billing/schemas.ts';
import { csvAnswer, fileAnswer, redirectAfterPost } from '../answers.ts';
import { commandOf, errorAnswer, listTrackers, mayChange, type PageContext, type Refused } from '../api.ts';
import { dayLabel } from '../charts.ts';
import * as ui from '../components.ts';
import { type Content, html } from '../components.ts';
import { show } from '../layout.ts';
import { amountCells, amountHeads, moneyText, priceNote } from '../price.ts';
import { get, type PageRoute, post } from '../routes.ts';
import { instantOf } from '../times.ts';
import { sum } from './overview.ts';

type Audits = Pick<ReturnType<typeof createRequestedAudits>, 'audit' | 'verdict'>;

const PATH = '/dashboard/billing';

/** Units by month, and whether the ledger proves them. */
export const billingPages = (audits: Audits): PageRoute[] => [
  get(PATH, (page) => billing(audits, page)),
  get(`${PATH}.csv`, csv),
  get(`${PATH}/:month`, (page) => oneMonth(audits, page)),
  get(`${PATH}/:month/ledger.jsonl`, ledgerFile),
  post(`${PATH}/audit`, 'member', async (page) =>
    redirectAfterPost(PATH, `audit-${await audits.audit(page.user.partner_id, commandOf(page))}`),
  ),
];

async function readMonths({ reads, user }: PageContext): Promise<readonly UnitsOfMonth[]> {
  await reads.waitForHead(['reveal-units'])();
  return listMonths(reads.db, user.partner_id);
}

const NO_MONTH = errorAnswer(404, 'month_not_found', 'There is no such month. Choose one of the list.');

async function billing(audits: Audits, page: PageContext, refused: Refused = null): Promise<Reply> {
  const [listed, audited] = await Promise.all([readMonths(page), audits.verdict(page.user.partner_id)]);
  const { price } = page.reads;
  return show(page, {
    title: 'Billing',
    section: 'Usage and billing',
    tab: PATH,
    refused,
    actions: listed.length > 0 && html`<a class="button quiet" href="${PATH}.csv">Download as CSV</a>`,
    content: html`${
      listed.length === 0
        ? ui.nothingYet(
            'No units yet',
            html`A unit is recorded when a reveal finds something. Reveal a
            <a href="/dashboard/sessions">session</a>, here or through the API.`,
          )
        : html`${ui.table(
            'Units by month (UTC) in which the reveal completed',
            ['Month', 'Reveals completed', 'Units', ...(price === null ? [] : ['At today’s price'])],
            listed.map(({ month, completed, units }) => [
              html`<a href="${PATH}/${month}">${monthText(month)}</a>${soFar(page, month)}`,
              ui.count(completed),
              ui.count(units),
              ...(price === null ? [] : [moneyText(price, units)]),
            ]),
            { numeric: [1, 2, 3] },
          )}${priceNote(price)}`
    }
    <section class="panel"><h2>Audit</h2>
      <p>Replays your ledger entry by entry and holds it against receipts and usage. The operator of the service can do the
        same with <code>doorplate audit billing</code>.</p>
      ${audited === null ? html`<p>Not audited yet.</p>` : verdictOf(page, audited)}
      ${mayChange(page) && ui.form(page, `${PATH}/audit`, html`<button>Audit now</button>`)}
    </section>`,
  });
}

const monthName = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' });
/** `2026-11` as `November 2026`. */
const monthText = (month: string): string => monthName.format(Date.parse(`${month}-01`));

/** What is said of the month that has not ended. */
const soFar = ({ request }: PageContext, month: string): string =>
  isoTime(request.receivedAt).startsWith(month) ? ' so far' : '';

/** Whether a text is `YYYY-MM`, of a year that PostgreSQL has, whose next month has four digits too. */
const isMonth = (text: string): boolean =>
  MONTH.test(text) && instantOf(`${text}-01`) !== null && text < '9999-12';

const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/;

/** The first instant of the month after `YYYY-MM`, ISO 8601. */
function monthAfter(month: string): string {
  const start = new Date(`${month}-01T00:00:00.000Z`);
  return new Date(start.setUTCMonth(start.getUTCMonth() + 1)).toISOString();
}

/** One month to print or save: units by website and day, the ledger's entries, and how to prove them. */
async function oneMonth(audits: Audits, page: PageContext): Promise<Reply> {
  const month = page.request.params.month ?? '';
  if (!isMonth(month)) return billing(audits, page, NO_MONTH);
  const { reads, user, request } = page;
  const cursor = page.query.get('cursor') ?? undefined;
  const [{ trackers }, ledger, days, verdict, actors, months] = await Promise.all([
    listTrackers(page),
    page.api<LedgerPage>('GET', '/v1/ledger', { query: { month, cursor, limit: '100' } }),
    reads.trackerDays(user.partner_id, null, {
      from: `${month}-01T00:00:00.000Z`,
      to: monthAfter(month),
    }),
    audits.verdict(user.partner_id),
    listActors(reads.db, user.partner_id, isoTime(request.receivedAt)),
    readMonths(page),
  ]);
  const nameOf = ui.namesOfTrackers(trackers);
  const at = `${PATH}/${month}`;
  const billed = days.filter(({ reveals }) => reveals > 0);
  return show(page, {
    title: `Bill of ${monthText(month)}${soFar(page, month)}`,
    section: 'Usage and billing',
    tab: PATH,
    up: [PATH, 'Billing'],
    refused: ledger.ok ? null : ledger,
    actions: html`<a class="button quiet" href="${at}/ledger.jsonl">Download the ledger (JSON Lines)</a>`,
    content: html`${
      ledger.ok &&
      ui.facts([
        ['Account', page.user.partner_name],
        ['Month (UTC)', monthText(month)],
        ['Reveals completed', ui.count(ledger.body.totals.entries)],
        ['Units', html`<strong>${ui.count(ledger.body.totals.units)}</strong>${soFar(page, month)}`],
        ...(reads.price === null
          ? []
          : [['At today’s price', moneyText(reads.price, ledger.body.totals.units)] as const]),
        ['Last audit', auditOf(page, verdict, month)],
      ])
    }
    ${priceNote(reads.price)}
    ${ui.tableOr(
      ledger.ok && ledger.body.totals.entries > 0
        ? html`<p>Units by website and day are kept for 400 days; the ledger below has every entry.</p>`
        : html`<p>No reveal was completed in this month.</p>`,
      'Units by website',
      ['Website', 'Reveals completed', 'Units'],
      [...Map.groupBy(billed, ({ tracker_id }) => tracker_id)].map(([id, of]) => [
        html`<a href="/dashboard/trackers/${id}">${nameOf(id)}</a>`,
        ui.count(sum(of, ({ reveals }) => reveals)),
        ui.count(sum(of, ({ units }) => units)),
      ]),
      { numeric: [1, 2] },
    )}
    ${
      billed.length > 0 &&
      ui.table(
        'Units by day (UTC)',
        ['Day', 'Reveals completed', 'Units'],
        [...Map.groupBy(billed, ({ day }) => day)].map(([day, of]) => [
          dayLabel(day),
          ui.count(sum(of, ({ reveals }) => reveals)),
          ui.count(sum(of, ({ units }) => units)),
        ]),
        { numeric: [1, 2] },
      )
    }
    ${ledger.ok && proof(page, ledger.body, months.map((one) => one.month).toReversed())}
    ${ledger.ok && ledger.body.entries.length > 0 && entriesOf(page, ledger.body, at, nameOf, new Map(actors.map(({ id, name }) => [id, name])))}`,
  });
}

/** What the last audit says of a month. */
function auditOf(page: PageContext, verdict: Verdict | null, month: string): Content {
  if (verdict === null || verdict.ended_at === null || verdict.report === null) return 'none that has ended';
  const { months, differences } = verdict.report;
  const proven = months.find((one) => one.month === month);
  const when = page.time(verdict.ended_at);
  if (proven === undefined) return html`${when}: this month had no entries then`;
  const found = differences.length === 0 ? 'no differences' : ui.counted(differences.length, 'difference');
  return html`${when}: ${found}; of this month ${ui.counted(proven.entries, 'entry', 'entries')}, ${ui.counted(proven.units, 'unit')}`;
}

/** What an auditor notes down, and how anybody with a key checks the bill without this service's word for it. */
const proof = (
  page: PageContext,
  { month, head, anchor, totals }: LedgerPage,
  months: readonly string[],
) => html`<section class="panel"><h2>Proof</h2>
  <p>Each entry of the ledger carries a digest that covers the one before, so nothing can be changed or removed unnoticed. Once a day
    the service signs what the ledger is: the anchor.</p>
  ${ui.facts([
    [
      'Last entry of the whole ledger',
      head === null ? 'none yet' : html`number ${ui.count(head.number)}, <code>${head.digest}</code>`,
    ],
    [
      'Newest anchor',
      anchor === null
        ? 'none yet: one is made each UTC day'
        : html`${page.time(anchor.made_at)}: ${ui.counted(anchor.entries, 'entry', 'entries')}, ${ui.counted(anchor.units, 'unit')}, head
            <code>${anchor.head_digest}</code>`,
    ],
    ...(anchor === null
      ? []
      : [
          ['Signature of the anchor (Ed25519)', html`<code>${anchor.signature}</code>`] as const,
          ['Public key', html`<code>${anchor.public_key}</code>`] as const,
        ]),
  ])}
  <p>Prove the bill yourself, with <a href="/dashboard/keys">any active key</a>. This command is the proof to rely on: you can read
    <a href="${CLIENT_PACKAGE_PATH}">its client</a> before you run it, and keep one copy for all months. It reads the whole ledger, checks every digest and the anchor's signature, and keeps the newest anchor in
    <code>anchors.jsonl</code>, a file of yours: run it once a month, and what was changed or removed since shows for ever.</p>
  ${ui.copyable(
    'Commands that prove the bill',
    `export DOORPLATE_URL=${shellQuoted(page.publicUrl)} DOORPLATE_API_KEY=…
touch anchors.jsonl
npx --yes ${shellQuoted(`${page.publicUrl}${CLIENT_PACKAGE_PATH}`)} verify --month ${month} --anchors anchors.jsonl`,
  )}
  <p>Add <code>--receipts receipts.jsonl</code> to hold the bill against the bodies of <code>reveal.completed</code> webhooks that your servers
    have kept, a line each. The file of the button above is the same ledger, to keep.</p>
  ${
    head !== null &&
    anchor !== null &&
    html`<div id="ledger-check" data-ledger="${JSON.stringify({ months, month, head, anchor, totals })}" hidden>
    <p>Your browser can make the same check. It is quicker, but the service sends its script anew each time: rely on the command.</p>
    <p><button class="quiet">Check in this browser</button></p><p role="status"></p></div>
    <script type="module" src="/dashboard/assets/ledger.js"></script>`
  }</section>`;

const entriesOf = (
  page: PageContext,
  ledger: LedgerPage,
  at: string,
  nameOf: (id: string) => string,
  actors: ReadonlyMap<string, string>,
) =>
  html`${ui.table(
    'Entries of the ledger',
    ['Number', 'Reveal', 'Website', 'Asked by', 'Completed', 'Units', 'Digest'],
    ledger.entries.map((entry) => [
      ui.count(entry.number),
      html`<code>${entry.reveal_id}</code>`,
      nameOf(entry.tracker_id),
      actors.get(entry.key_id ?? entry.user_id ?? '') ?? entry.key_id ?? 'a former user',
      page.time(entry.completed_at),
      String(entry.units),
      html`<code>${entry.digest.slice(0, 12)}…</code>`,
    ]),
    { numeric: [0, 5], minor: [1, 6] },
  )}${ui.pager(
    `${ui.counted(ledger.entries.length, 'entry', 'entries')} of ${ui.count(ledger.totals.entries)} in this month.`,
    ledger.has_more ? { path: at, query: { cursor: ledger.next_cursor }, text: 'More entries' } : null,
  )}`;

/** Entries that one file holds; a longer month is read with the client, page by page. */
const MAX_FILE_ENTRIES = 20_000;
const FILE_PAGE = 500;

async function ledgerFile(page: PageContext): Promise<Reply> {
  const month = page.request.params.month ?? '';
  const lines: string[] = [];
  for (let cursor: string | undefined; lines.length < MAX_FILE_ENTRIES; ) {
    const read = await page.api<LedgerPage>('GET', '/v1/ledger', {
      query: { month, cursor, limit: String(FILE_PAGE) },
    });
    if (!read.ok) {
      return show(page, {
        title: 'The ledger',
        section: 'Usage and billing',
        tab: PATH,
        refused: read,
        content: '',
      });
    }
    lines.push(...read.body.entries.map((entry) => JSON.stringify(entry)));
    if (!read.body.has_more) break;
    cursor = read.body.next_cursor;
    if (lines.length >= MAX_FILE_ENTRIES) {
      return show(page, {
        title: 'The ledger',
        section: 'Usage and billing',
        tab: PATH,
        status: 409,
        content:
          ui.notice(html`<p>This month has more than ${ui.count(MAX_FILE_ENTRIES)} entries. Read it with the client instead:
          <code>client.ledger({ month })</code> gives every entry. <a href="${PATH}/${month}">Back to the bill</a></p>`),
      });
    }
  }
  return fileAnswer(
    `doorplate-ledger-${month}.jsonl`,
    'application/jsonl; charset=utf-8',
    lines.map((line) => `${line}\n`).join(''),
  );
}

function verdictOf(page: PageContext, { began_at, ended_at, report }: Verdict) {
  if (ended_at === null) {
    return html`<p class="notice wait">An audit began ${page.time(began_at)}. <a class="reload" href="${PATH}">Look again</a></p>`;
  }
  if (report === null) {
    return html`<p class="alert">The audit of ${page.time(began_at)} did not come to its end. Try it again.</p>`;
  }
  const { differences, units, months } = report;
  return html`${
    differences.length === 0
      ? html`<p class="said"><strong>No differences.</strong> ${ui.counted(units, 'unit')} proven, ${page.time(ended_at)}.</p>`
      : html`<p class="alert"><strong>${ui.counted(differences.length, 'difference')}</strong> found, ${page.time(ended_at)}. Tell the operator
          of the service.</p>${ui.table(
            'Differences',
            ['Kind', 'Stream', 'Detail'],
            differences
              .slice(0, 100)
              .map(({ kind, stream, detail }) => [kind, html`<code>${stream}</code>`, detail]),
          )}`
  }
  ${
    months.length > 0 &&
    html`<details><summary>The ledger by month, with digests to note down</summary>${ui.table(
      'Ledger by month',
      ['Month', 'Entries', 'Units', 'Digest of its last entry'],
      months.map(({ month, entries, units, head_digest }) => [
        monthText(month),
        ui.count(entries),
        ui.count(units),
        html`<code>${head_digest ?? '–'}</code>`,
      ]),
    )}</details>`
  }`;
}

async function csv(page: PageContext): Promise<Reply> {
  const rows = await readMonths(page);
  const { price } = page.reads;
  return csvAnswer(
    'doorplate-units.csv',
    ['month', 'completed_reveals', 'units', ...amountHeads(price)],
    rows.map(({ month, completed, units }) => [month, completed, units, ...amountCells(price, units)]),
  );
}
