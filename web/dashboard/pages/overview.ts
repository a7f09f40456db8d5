import type { Reply } from '../../../http/contract/route.ts';
import type { Notice } from '../../../operations/condition.ts';
import {
  type Companies,
  type CompanyRow,
  listCompanies,
  REVEALS_ON_A_PAGE,
} from '../../../read-api/reveals/companies.ts';
import {
  type LookupDay,
  type Range,
  readLookupDays,
  readStartState,
  type TrackerDay,
} from '../../../read-api/usage/partner-usage.ts';
import { listTrackers, type PageContext } from '../api.ts';
import { barChart, dayLabel, lineChart } from '../charts.ts';
import * as ui from '../components.ts';
import { type Content, type Html, html } from '../components.ts';
import { show } from '../layout.ts';
import { changed, scopePickers } from '../pickers.ts';
import { get, type PageRoute } from '../routes.ts';
import { isKept, linkTo, periodBefore, SESSIONS_KEPT_DAYS } from '../scope.ts';
import { type Pixel, readPixels } from './install-check.ts';
import { showsStart, startPanel } from './start.ts';

/** The nine outcomes of a lookup (contract, Usage 2), in a person's words. Polls of unfinished work are not shown as work. */
export const OUTCOME_GROUPS = [
  { name: 'Company', tone: 'good', outcomes: ['company'] },
  { name: 'Other network', tone: 'off', outcomes: ['isp', 'unclassified'] },
  { name: 'Enriching', tone: 'wait', outcomes: ['enqueued'] },
  { name: 'Refused or failed', tone: 'bad', outcomes: ['invalid_request', 'rate_limited', 'error'] },
] as const;

/** Requests that ask again for work that is under way. */
export const POLLS: readonly string[] = ['pending', 'retrying'];

const COMPANIES_SHOWN = 10;

/** The home page: who visited, what it cost, and what needs attention. */
export const overviewPage: PageRoute = get('/dashboard', overview);

/** Reads the lookups of a range by day, with those that were answered a moment ago. */
export async function readLookups({ reads, user }: PageContext, range: Range): Promise<readonly LookupDay[]> {
  await reads.waitForHead(['usage', 'tracker-usage', 'reveals', 'sessions', 'reveal-units'])();
  return readLookupDays(reads.db, user.partner_id, range);
}

/** Reads the companies of a range, on the page's website, from at most `limit` reveals. `asOf`: of those until then. */
export const readCompanies = (
  { reads, user, scope: { trackerId } }: PageContext,
  { from, to }: Range,
  asOf: string | null = null,
  limit = REVEALS_ON_A_PAGE,
): Promise<Companies> =>
  listCompanies(reads.db, { partnerId: user.partner_id, trackerId, from, to, asOf }, limit);

async function overview(page: PageContext): Promise<Reply> {
  const { reads, user, scope } = page;
  const { partner_id } = user;
  const { period, trackerId } = scope;
  const before = periodBefore(period);
  const comparable = isKept(before, page.request.receivedAt);
  const both = { from: before.from, to: period.to };
  const [{ trackers, failed }, companies, earlier, allDays, allLookups, notices, state] = await Promise.all([
    listTrackers(page),
    readCompanies(page, period),
    comparable ? readCompanies(page, before) : null,
    reads.trackerDays(partner_id, trackerId, both),
    readLookups(page, both),
    reads.notices(partner_id, page.request.receivedAt),
    readStartState(reads.db, partner_id),
  ]);
  const broken = brokenNotices((await readPixels(page, trackers)).filter(({ fault }) => fault !== null));
  const attention = [...notices, ...broken];
  const start = showsStart(page) && startPanel(page, state, trackers);
  if (!state.hasVisit && !state.hasLookedUp) {
    return show(page, {
      title: 'Home',
      section: 'Home',
      refused: failed,
      content: html`${attention.length > 0 && attentionPanel(attention)}
      ${
        start ||
        ui.nothingYet(
          'No visits yet',
          html`Visits show here as soon as a page with the snippet of a website is opened.
            <a href="/dashboard/trackers">See the websites</a>`,
        )
      }`,
    });
  }
  const [daysBefore, days] = splitAt(allDays, period);
  const [lookupsBefore, lookups] = splitAt(allLookups, period);
  const ofDays = (of: (row: TrackerDay) => number): Omit<Figure, 'name'> => ({
    ...{ now: sum(days, of), before: sum(daysBefore, of) },
    of: (day) => sum(days, (row) => (row.day === day ? of(row) : 0)),
  });
  const figures: readonly Figure[] = [
    { name: 'Sessions', ...ofDays(({ sessions }) => sessions) },
    {
      name: 'Companies',
      now: companies.companies.length,
      before: earlier === null ? null : earlier.companies.length,
      of: (day) => companies.companies.filter(({ first_seen_at }) => first_seen_at.startsWith(day)).length,
    },
    { name: 'Visits', ...ofDays(({ visits }) => visits) },
    { name: 'Reveals', ...ofDays(({ reveals }) => reveals) },
    { name: 'Units', ...ofDays(({ units }) => units) },
    {
      name: 'Lookups',
      now: sum(lookups, ({ requests }) => requests),
      before: sum(lookupsBefore, ({ requests }) => requests),
      of: () => 0,
    },
  ];
  const here = figures.find(({ name }) => name === page.query.get('figure')) ?? (figures[0] as Figure);
  const nameOf = ui.namesOfTrackers(trackers);
  return show(page, {
    title: 'Home',
    section: 'Home',
    refused: failed,
    pickers: scopePickers(page, trackers),
    content: html`${attention.length > 0 && attentionPanel(attention)}
    ${start}
    <div class="join">${ui.tiles(
      figures.map(({ name, now, before }) => ({
        ...{ name, now, before, href: changed(page, { figure: name }) },
        value: `${ui.count(now)}${name === 'Companies' && companies.isPartial ? '+' : ''}`,
      })),
      here.name,
    )}
    ${
      here.name === 'Lookups'
        ? lookupChart(period.days, lookups)
        : lineChart({
            title: here.name === 'Companies' ? 'Companies by the day they first came' : `${here.name} a day`,
            axis: 'Day',
            series: [{ name: here.name }],
            points: period.days.map((day) => ({ label: dayLabel(day), values: [here.of(day)] })),
          })
    }</div>
    ${!isKept(period, page.request.receivedAt) && html`<p class="soft">Companies and sessions are kept for ${SESSIONS_KEPT_DAYS} days. The other figures cover the whole period.</p>`}
    <div class="columns lead">${companiesPanel(page, companies, nameOf)}${websiteTable(page, days, nameOf, ['sessions', 'visits'])}</div>`,
  });
}

/** A figure of the period, which the chart shows day by day. */
interface Figure {
  readonly name: string;
  readonly now: number;
  /** Of the period before; null: it is not kept. */
  readonly before: number | null;
  readonly of: (day: string) => number;
}

/** The rows before a period, and those of it. */
export function splitAt<Row extends { readonly day: string }>(
  rows: readonly Row[],
  { from }: Range,
): readonly [before: readonly Row[], during: readonly Row[]] {
  const isBefore = ({ day }: Row): boolean => day < from.slice(0, 10);
  return [rows.filter(isBefore), rows.filter((row) => !isBefore(row))];
}

/** Lookups by day and outcome, of all keys. */
export const lookupChart = (days: readonly string[], lookups: readonly LookupDay[]) =>
  barChart({
    title: 'Lookups a day, all keys',
    axis: 'Day',
    series: OUTCOME_GROUPS,
    points: days.map((day) => ({
      label: dayLabel(day),
      values: OUTCOME_GROUPS.map(({ outcomes }) =>
        sum(
          lookups.filter((row) => row.day === day && (outcomes as readonly string[]).includes(row.outcome)),
          ({ requests }) => requests,
        ),
      ),
    })),
  });

export const sum = <T>(rows: readonly T[], of: (row: T) => number): number =>
  rows.reduce((total, row) => total + of(row), 0);

const BROKEN_NAMED = 5;

/** Names the websites whose pixel sends nothing that counts. */
const brokenNotices = (broken: readonly Pixel[]): Notice[] => [
  ...broken.slice(0, BROKEN_NAMED).map(({ tracker, fault }) => ({
    tone: 'bad' as const,
    text: `Check the pixel of “${tracker.name}”. ${fault}`,
    href: `/dashboard/trackers/${tracker.id}`,
    action: 'See what to change',
  })),
  ...(broken.length > BROKEN_NAMED
    ? [
        {
          tone: 'bad' as const,
          text: `The pixels of ${ui.count(broken.length - BROKEN_NAMED)} more websites do not work.`,
          href: '/dashboard/trackers',
          action: 'See the websites',
        },
      ]
    : []),
];

const attentionPanel = (all: readonly Notice[]) =>
  html`<section aria-label="Needs attention">${all.map(({ tone, text, href, action }) =>
    ui.notice(html`<p>${text} <a href="${href}">${action}</a></p>`, tone),
  )}</section>`;

function companiesPanel(
  { scope, ago }: PageContext,
  { companies }: Companies,
  nameOf: (trackerId: string) => string,
): Content {
  if (companies.length === 0) {
    return ui.nothingYet(
      'No companies in this period',
      html`A company appears here when one of its sessions is revealed. <a href="${linkTo('/dashboard/sessions', scope.query)}">Choose sessions to reveal</a>`,
    );
  }
  return html`<div>${ui.table(
    'Latest companies',
    ['Company', 'Website', 'Sessions', 'Seen'],
    companies
      .slice(0, COMPANIES_SHOWN)
      .map((company) => [
        companyLink(company, scope.query),
        ui.fewOf(company.tracker_ids.map(nameOf), 1),
        ui.count(company.sessions),
        ago(company.last_seen_at),
      ]),
    { numeric: [2] },
  )}
  <p><a href="${linkTo('/dashboard/companies', scope.query)}">All ${ui.counted(companies.length, 'company', 'companies')}</a></p></div>`;
}

/** These figures of the websites in a period, the busiest first; null: none was visited. */
export function websiteTable(
  { scope }: PageContext,
  days: readonly TrackerDay[],
  nameOf: (trackerId: string) => string,
  figures: readonly ('sessions' | 'visits' | 'reveals' | 'units')[],
): Html | null {
  const rows = [...Map.groupBy(days, ({ tracker_id }) => tracker_id)]
    .map(([id, of]) => ({ id, figures: figures.map((name) => sum(of, (row) => row[name])) }))
    .toSorted((a, b) => (b.figures[0] ?? 0) - (a.figures[0] ?? 0));
  if (rows.length === 0) return null;
  return ui.table(
    'By website',
    ['Website', ...figures.map((name) => `${name.charAt(0).toUpperCase()}${name.slice(1)}`)],
    rows.map(({ id, figures }) => [
      html`<a href="${linkTo(`/dashboard/trackers/${id}`, scope.query)}">${nameOf(id)}</a>`,
      ...figures.map(ui.count),
    ]),
    { numeric: figures.map((_, nth) => nth + 1), isWhole: true },
  );
}

/** The company's name, which leads to its page. */
export const companyLink = (
  { name }: Pick<CompanyRow, 'name'>,
  scope: PageContext['scope']['query'],
): Content => html`<a href="${linkTo('/dashboard/company', { name }, scope)}">${name}</a>`;
