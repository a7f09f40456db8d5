import { searchKey } from '../../../domain/kernel/text.ts';
import type { Reply } from '../../../http/contract/route.ts';
import type { CompanyRow, CompanyVisit, ReadCompanies } from '../../../read-api/reveals/companies.ts';
import { csvAnswer } from '../answers.ts';
import { listTrackers, plainText, type Visit } from '../api.ts';
import {
  count,
  counted,
  facts,
  field,
  filterForm,
  html,
  namesOfTrackers,
  nothingYet,
  pager,
  table,
} from '../components.ts';
import { show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';
import { isKept, linkTo, SESSIONS_KEPT_DAYS } from '../scope.ts';
import { instantOf } from '../times.ts';
import { companyLink } from './overview.ts';
import { known } from './reveals.ts';

export interface CompanyDeps {
  readonly companies: ReadCompanies;
  /** The sessions of one company that are kept, the newest first. */
  readonly companyVisits: (visit: Visit, name: string) => Promise<readonly CompanyVisit[]>;
}

const PATH = '/dashboard/companies';
const PAGE = 100;

/** The companies behind the revealed sessions. */
export const companyPages = (deps: CompanyDeps): PageRoute[] => [
  { method: 'GET', path: PATH, handle: (visit) => list(deps, visit) },
  { method: 'GET', path: `${PATH}.csv`, handle: (visit) => csv(deps, visit) },
  { method: 'GET', path: '/dashboard/company', handle: (visit) => one(deps, visit) },
];

const wanted = ({ query }: Visit): string => plainText(query.get('company')).slice(0, 200);

async function find({ companies }: CompanyDeps, visit: Visit, asOf: string | null, asFile = false) {
  const { period, trackerId } = visit.scope;
  const text = searchKey(wanted(visit));
  const { companies: all, isPartial } = await companies(
    visit.user.partner_id,
    trackerId,
    period,
    asOf,
    asFile,
  );
  return { found: all.filter(({ name }) => searchKey(name).includes(text)), isPartial };
}

/** The last row of the page before, and when the first page was made: what is revealed later stands on no later page. */
interface Cursor {
  readonly asOf: string;
  readonly came_at: string;
  readonly key: string;
}

const CURSOR = /^(\d{4}-[\dT:.-]{18}Z)_(\d{4}-[\dT:.-]{18}Z)_([\da-f]{32})$/;

function cursorIn({ query }: Visit): Cursor | null {
  const [, asOf = '', came_at = '', key = ''] = CURSOR.exec(query.get('after') ?? '') ?? [];
  return instantOf(asOf) === null || instantOf(came_at) === null ? null : { asOf, came_at, key };
}

/** How many rows stand on the pages before. */
const before = (rows: readonly CompanyRow[], { came_at, key }: Cursor): number =>
  rows.filter((row) => row.came_at > came_at || (row.came_at === came_at && row.key <= key)).length;

async function list(deps: CompanyDeps, visit: Visit): Promise<Reply> {
  const cursor = cursorIn(visit);
  const asOf = cursor?.asOf ?? new Date(visit.request.receivedAt).toISOString();
  const [{ trackers, failed }, { found, isPartial }] = await Promise.all([
    listTrackers(visit),
    find(deps, visit, cursor?.asOf ?? null),
  ]);
  const company = wanted(visit);
  const first = cursor === null ? 0 : before(found, cursor);
  const shown = found.slice(first, first + PAGE);
  const last = shown.at(-1);
  const nameOf = namesOfTrackers(trackers);
  const query = { ...visit.scope.query, company };
  return show(visit, {
    title: 'Companies',
    section: 'Companies',
    refused: failed,
    ...(found.length > 0
      ? { actions: html`<a class="button quiet" href="${linkTo(`${PATH}.csv`, query)}">Download as CSV</a>` }
      : {}),
    content: html`${filterForm(visit, trackers, field('Company name', 'company', { value: company, maxlength: 200 }))}
    ${!isKept(visit.scope.period, visit.request.receivedAt) && html`<p class="soft">Companies are kept for ${SESSIONS_KEPT_DAYS} days, so the list begins then.</p>`}
    ${isPartial && html`<p class="soft">The page shows the companies of the newest reveals of the period. The CSV file has all; or choose a shorter period or one website.</p>`}
    ${
      shown.length === 0
        ? nothingYet(
            'No companies match',
            html`A company appears here when a session of it is revealed.
              <a href="${linkTo('/dashboard/sessions', visit.scope.query)}">See the sessions of the period</a>${company !== '' && html`, or <a href="${linkTo(PATH, visit.scope.query)}">all companies of the period</a>`}.`,
          )
        : html`${table(
            'Companies, those that came last first',
            ['Company', 'Sessions', 'Websites', 'First seen', 'Last seen', 'Industry', 'Country'],
            shown.map((row) => [
              companyLink(row, visit.scope.query),
              count(row.sessions),
              row.tracker_ids.map(nameOf).join(', '),
              visit.ago(row.first_seen_at),
              visit.ago(row.last_seen_at),
              row.industry ?? '–',
              row.country ?? '–',
            ]),
            { numeric: [1] },
          )}${pager(
            found.length > PAGE
              ? `${count(first + 1)} to ${count(first + shown.length)} of ${counted(found.length, 'company', 'companies')}.`
              : `${counted(found.length, 'company', 'companies')}.`,
            last !== undefined && first + PAGE < found.length
              ? {
                  path: PATH,
                  query: { ...query, after: `${asOf}_${last.came_at}_${last.key}` },
                  text: 'More companies',
                }
              : null,
          )}`
    }`,
  });
}

async function csv(deps: CompanyDeps, visit: Visit): Promise<Reply> {
  const [{ trackers }, { found }] = await Promise.all([listTrackers(visit), find(deps, visit, null, true)]);
  const nameOf = namesOfTrackers(trackers);
  const { days } = visit.scope.period;
  return csvAnswer(
    `doorplate-companies-${days[0]}-${days.at(-1)}.csv`,
    ['company', 'website', 'industry', 'country', 'sessions', 'first_seen_at', 'last_seen_at', 'websites'],
    found.map((row: CompanyRow) => [
      row.name,
      row.website,
      row.industry,
      row.country,
      row.sessions,
      row.first_seen_at,
      row.last_seen_at,
      row.tracker_ids.map(nameOf).join('; '),
    ]),
  );
}

async function one({ companyVisits }: CompanyDeps, visit: Visit): Promise<Reply> {
  const name = plainText(visit.query.get('name'));
  const [{ trackers }, visits] = await Promise.all([listTrackers(visit), companyVisits(visit, name)]);
  const [newest] = visits;
  const nameOf = namesOfTrackers(trackers);
  if (newest === undefined) {
    return show(visit, {
      title: name === '' ? 'Company' : name,
      section: 'Companies',
      status: 404,
      content: nothingYet(
        'No sessions of this company are kept',
        html`Sessions are kept for ${SESSIONS_KEPT_DAYS} days. <a href="${linkTo(PATH, visit.scope.query)}">All companies</a>`,
      ),
    });
  }
  const oldest = visits.reduce(
    (first, { first_seen_at }) => (first_seen_at < first ? first_seen_at : first),
    newest.first_seen_at,
  );
  return show(visit, {
    title: String(newest.company.name),
    section: 'Companies',
    showsCountry: true,
    content: html`${facts([
      ['Sessions', count(visits.length)],
      ['First seen', visit.time(oldest)],
      ['Last seen', visit.time(newest.last_seen_at)],
      ['Websites', [...new Set(visits.map(({ tracker_id }) => nameOf(tracker_id)))].join(', ')],
    ])}
    ${known('Company', newest.company)}
    ${table(
      `Sessions of the last ${SESSIONS_KEPT_DAYS} days, those that were seen last first`,
      ['Session', 'Website', 'Country', 'Last seen', 'Receipt'],
      visits.map((row) => [
        html`<a href="/dashboard/sessions/${row.session_id}">${visit.time(row.first_seen_at)}</a>`,
        nameOf(row.tracker_id),
        row.visitor_country ?? 'unknown',
        visit.time(row.last_seen_at),
        html`<a href="/dashboard/reveals/${row.reveal_id}">Receipt</a>`,
      ]),
    )}
    ${visits.length === MAX_VISITS && html`<p class="soft">The newest ${count(MAX_VISITS)} sessions are shown.</p>`}
    <p><a href="${linkTo(PATH, visit.scope.query)}">All companies</a></p>`,
  });
}

/** Sessions of a company on its page. */
export const MAX_VISITS = 200;
