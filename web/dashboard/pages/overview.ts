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
} from '../../../read-api/usage/partner-usage.ts';
import { listTrackers, type PageContext } from '../api.ts';
import { barChart, dayLabel } from '../charts.ts';
import {
  type Content,
  count,
  counted,
  filterForm,
  html,
  namesOfTrackers,
  nothingYet,
  notice,
  table,
  tiles,
} from '../components.ts';
import { show } from '../layout.ts';
import { get, type PageRoute } from '../routes.ts';
import { isKept, linkTo, periodBefore, SESSIONS_KEPT_DAYS } from '../scope.ts';
import { type Broken, findBroken } from './install-check.ts';
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
  const broken = brokenNotices(await findBroken(page, trackers));
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
        nothingYet(
          'No visits yet',
          html`Visits show here as soon as a page with the snippet of a website is opened.
            <a href="/dashboard/trackers">See the websites</a>`,
        )
      }`,
    });
  }
  const [daysBefore, days] = splitAt(allDays, period);
  const [lookupsBefore, lookups] = splitAt(allLookups, period);
  return show(page, {
    title: 'Home',
    section: 'Home',
    refused: failed,
    showsCountry: true,
    content: html`${attention.length > 0 && attentionPanel(attention)}
    ${start}
    ${filterForm(page, trackers)}
    ${tiles([
      {
        name: 'Companies',
        href: linkTo('/dashboard/companies', page.scope.query),
        value: `${count(companies.companies.length)}${companies.isPartial ? '+' : ''}`,
        now: companies.companies.length,
        before: earlier === null ? null : earlier.companies.length,
      },
      ...(['sessions', 'visits', 'reveals', 'units'] as const).map((name) => ({
        name: name.charAt(0).toUpperCase() + name.slice(1),
        ...(name === 'sessions' ? { href: linkTo('/dashboard/sessions', page.scope.query) } : {}),
        ...figure(days, daysBefore, (row) => row[name]),
      })),
      {
        name: 'Lookup requests',
        href: linkTo('/dashboard/usage', page.scope.query),
        ...figure(lookups, lookupsBefore, ({ requests }) => requests),
      },
    ])}
    ${!isKept(period, page.request.receivedAt) && html`<p class="soft">Companies and sessions are kept for ${SESSIONS_KEPT_DAYS} days. The other figures cover the whole period.</p>`}
    ${companiesPanel(page, companies, namesOfTrackers(trackers))}
    ${
      period.days.length > 0 &&
      barChart({
        title: 'Sessions and reveals a day',
        axis: 'Day',
        isStacked: false,
        series: [{ name: 'Sessions' }, { name: 'Reveals' }],
        points: period.days.map((day) => {
          const of = days.filter((row) => row.day === day);
          return {
            label: dayLabel(day),
            values: [sum(of, ({ sessions }) => sessions), sum(of, ({ reveals }) => reveals)],
          };
        }),
      })
    }
    ${lookups.length > 0 && lookupChart(period.days, lookups)}`,
  });
}

/** The rows before a period, and those of it. */
export function splitAt<Row extends { readonly day: string }>(
  rows: readonly Row[],
  { from }: Range,
): readonly [before: readonly Row[], during: readonly Row[]] {
  const isBefore = ({ day }: Row): boolean => day < from.slice(0, 10);
  return [rows.filter(isBefore), rows.filter((row) => !isBefore(row))];
}

function figure<Row>(rows: readonly Row[], rowsBefore: readonly Row[], of: (row: Row) => number) {
  const now = sum(rows, of);
  return { value: count(now), now, before: sum(rowsBefore, of) };
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
const brokenNotices = (broken: readonly Broken[]): Notice[] => [
  ...broken.slice(0, BROKEN_NAMED).map(({ tracker, seen }) => ({
    tone: 'bad' as const,
    text: `The pixel of “${tracker.name}” does not work. ${seen}`,
    href: `/dashboard/trackers/${tracker.id}#install-check`,
    action: 'See what to change',
  })),
  ...(broken.length > BROKEN_NAMED
    ? [
        {
          tone: 'bad' as const,
          text: `The pixels of ${count(broken.length - BROKEN_NAMED)} more websites do not work.`,
          href: '/dashboard/trackers',
          action: 'See the websites',
        },
      ]
    : []),
];

const attentionPanel = (all: readonly Notice[]) =>
  html`<section aria-label="Needs attention"><h2>Needs attention</h2>${all.map(
    ({ tone, text, href, action }) => notice(html`<p>${text} <a href="${href}">${action}</a></p>`, tone),
  )}</section>`;

function companiesPanel(
  { scope, ago }: PageContext,
  { companies }: Companies,
  nameOf: (trackerId: string) => string,
): Content {
  if (companies.length === 0) {
    return nothingYet(
      'No companies in this period',
      html`A company appears here when a session of it is revealed. See the
        <a href="${linkTo('/dashboard/sessions', scope.query)}">sessions of the period</a> and reveal those that interest you.`,
    );
  }
  return html`${table(
    'Companies that visited, the latest first',
    ['Company', 'Sessions', 'Websites', 'Last seen'],
    companies
      .slice(0, COMPANIES_SHOWN)
      .map((company) => [
        companyLink(company, scope.query),
        count(company.sessions),
        company.tracker_ids.map(nameOf).join(', '),
        ago(company.last_seen_at),
      ]),
    { numeric: [1] },
  )}
  <p><a href="${linkTo('/dashboard/companies', scope.query)}">All ${counted(companies.length, 'company', 'companies')}</a></p>`;
}

/** The company's name, which leads to its page. */
export const companyLink = (
  { name }: Pick<CompanyRow, 'name'>,
  scope: PageContext['scope']['query'],
): Content => html`<a href="${linkTo('/dashboard/company', { name }, scope)}">${name}</a>`;
