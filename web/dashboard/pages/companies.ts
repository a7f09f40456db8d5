import { searchKey } from '../../../domain/kernel/text.ts';
import type { Reply } from '../../../http/contract/route.ts';
import {
  type CompanyRow,
  countUnrevealed,
  listCompanyVisits,
  REVEALS_IN_A_FILE,
  REVEALS_ON_A_PAGE,
  type Unrevealed,
} from '../../../read-api/reveals/companies.ts';
import { csvAnswer } from '../answers.ts';
import { listTrackers, type PageContext, plainText } from '../api.ts';
import * as ui from '../components.ts';
import { html } from '../components.ts';
import { countryName } from '../countries.ts';
import { show } from '../layout.ts';
import { chips, filterMenu, scopePickers } from '../pickers.ts';
import { get, type PageRoute } from '../routes.ts';
import { fileScope, isKept, linkTo, SESSIONS_KEPT_DAYS } from '../scope.ts';
import { instantOf } from '../times.ts';
import { companyLink, readCompanies } from './overview.ts';
import { known } from './reveals.ts';

const PATH = '/dashboard/companies';
const PAGE = 100;

/** The companies behind the revealed sessions. */
export const companyPages: readonly PageRoute[] = [
  get(PATH, list),
  get(`${PATH}.csv`, csv),
  get('/dashboard/company', one),
];

const wanted = ({ query }: PageContext): string => plainText(query.get('company')).slice(0, 200);

async function find(page: PageContext, asOf: string | null, limit: number) {
  const text = searchKey(wanted(page));
  const { companies, isPartial } = await readCompanies(page, page.scope.period, asOf, limit);
  return { found: companies.filter(({ name }) => searchKey(name).includes(text)), isPartial };
}

/** The last row of the page before, and when the first page was made: what is revealed later stands on no later page. */
interface Cursor {
  readonly asOf: string;
  readonly came_at: string;
  readonly key: string;
}

const CURSOR = /^(\d{4}-[\dT:.-]{18}Z)_(\d{4}-[\dT:.-]{18}Z)_([\da-f]{32})$/;

function cursorIn({ query }: PageContext): Cursor | null {
  const [, asOf = '', came_at = '', key = ''] = CURSOR.exec(query.get('after') ?? '') ?? [];
  return instantOf(asOf) === null || instantOf(came_at) === null ? null : { asOf, came_at, key };
}

/** How many rows stand on the pages before. */
const before = (rows: readonly CompanyRow[], { came_at, key }: Cursor): number =>
  rows.filter((row) => row.came_at > came_at || (row.came_at === came_at && row.key <= key)).length;

async function list(page: PageContext): Promise<Reply> {
  const cursor = cursorIn(page);
  const asOf = cursor?.asOf ?? new Date(page.request.receivedAt).toISOString();
  const [{ trackers, failed }, { found, isPartial }, unrevealed] = await Promise.all([
    listTrackers(page),
    find(page, cursor?.asOf ?? null, REVEALS_ON_A_PAGE),
    countUnrevealed(page.reads.db, { partnerId: page.user.partner_id, ...page.scope.period, ...page.scope }),
  ]);
  const company = wanted(page);
  const first = cursor === null ? 0 : before(found, cursor);
  const shown = found.slice(first, first + PAGE);
  const last = shown.at(-1);
  const nameOf = ui.namesOfTrackers(trackers);
  const query = { ...page.scope.query, company };
  return show(page, {
    title: 'Companies',
    section: 'Companies',
    refused: failed,
    ...(found.length > 0
      ? { actions: html`<a class="button quiet" href="${linkTo(`${PATH}.csv`, query)}">Download as CSV</a>` }
      : {}),
    pickers: html`${filterMenu(page, ['company'], ui.field('Company name', 'company', { value: company, maxlength: 200 }))}${scopePickers(page, trackers)}`,
    chips: chips(page, [company !== '' && { text: `Company: ${company}`, names: ['company'] }]),
    content: html`${!isKept(page.scope.period, page.request.receivedAt) && html`<p class="soft">Companies are kept for ${SESSIONS_KEPT_DAYS} days, so the list begins then.</p>`}
    ${unrevealedNote(page, unrevealed)}
    ${isPartial && html`<p class="soft">The page shows the companies of the newest reveals of the period. The CSV file has all; or choose a shorter period or one website.</p>`}
    ${
      shown.length === 0
        ? ui.nothingYet(
            'No companies match',
            html`A company appears here when a session of it is revealed.
              <a href="${linkTo('/dashboard/sessions', page.scope.query)}">See the sessions of the period</a>${company !== '' && html`, or <a href="${linkTo(PATH, page.scope.query)}">all companies of the period</a>`}.`,
          )
        : html`${ui.table(
            'Companies, the latest first',
            ['Company', 'Industry', 'Country', 'Websites', 'Sessions', 'Seen'],
            shown.map((row) => [
              companyLink(row, page.scope.query),
              row.industry ?? '–',
              row.country === null ? '–' : countryName(row.country),
              ui.fewOf(row.tracker_ids.map(nameOf), 1),
              ui.count(row.sessions),
              page.ago(row.last_seen_at),
            ]),
            { numeric: [4], minor: [1, 2] },
          )}${ui.pager(
            found.length > PAGE
              ? `${ui.count(first + 1)} to ${ui.count(first + shown.length)} of ${ui.counted(found.length, 'company', 'companies')}.`
              : `${ui.counted(found.length, 'company', 'companies')}.`,
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

/** How many sessions of the period a company may still stand behind. */
function unrevealedNote({ scope }: PageContext, { sessions, isCutShort }: Unrevealed) {
  if (sessions === 0) return null;
  const many = `${isCutShort ? 'At least ' : ''}${ui.counted(sessions, 'session')}`;
  const link = linkTo('/dashboard/sessions', scope.query, { revealed: 'no' });
  return html`<p class="soft">${many} of the period ${sessions === 1 ? 'is' : 'are'} not revealed. <a href="${link}">See them</a></p>`;
}

async function csv(page: PageContext): Promise<Reply> {
  const [{ trackers }, { found }] = await Promise.all([
    listTrackers(page),
    find(page, null, REVEALS_IN_A_FILE),
  ]);
  const nameOf = ui.namesOfTrackers(trackers);
  const { trackerId } = page.scope;
  return csvAnswer(
    `doorplate-companies-${fileScope(page.scope, trackerId === null ? null : nameOf(trackerId))}.csv`,
    [
      ...[
        'company',
        'website',
        'industry',
        'country',
        'sessions',
        'first_seen_at',
        'last_seen_at',
        'websites',
      ],
      ...['city', 'region'],
    ],
    found.map((row: CompanyRow) => [
      row.name,
      row.website,
      row.industry,
      row.country,
      row.sessions,
      row.first_seen_at,
      row.last_seen_at,
      row.tracker_ids.map(nameOf).join('; '),
      row.city,
      row.region,
    ]),
  );
}

async function one(page: PageContext): Promise<Reply> {
  const name = plainText(page.query.get('name'));
  const ofCompany = { partnerId: page.user.partner_id, trackerId: null, name, limit: MAX_VISITS };
  const [{ trackers }, visits] = await Promise.all([
    listTrackers(page),
    listCompanyVisits(page.reads.db, ofCompany),
  ]);
  const [newest] = visits;
  const nameOf = ui.namesOfTrackers(trackers);
  if (newest === undefined) {
    return show(page, {
      title: name === '' ? 'Company' : name,
      section: 'Companies',
      status: 404,
      content: ui.nothingYet(
        'No sessions of this company are kept',
        html`Sessions are kept for ${SESSIONS_KEPT_DAYS} days. <a href="${linkTo(PATH, page.scope.query)}">All companies</a>`,
      ),
    });
  }
  const oldest = visits.reduce(
    (first, { first_seen_at }) => (first_seen_at < first ? first_seen_at : first),
    newest.first_seen_at,
  );
  return show(page, {
    title: String(newest.company.name),
    section: 'Companies',
    up: [linkTo(PATH, page.scope.query), 'Companies'],
    showsCountry: true,
    content: html`${ui.facts([
      ['Sessions', ui.count(visits.length)],
      ['First seen', page.time(oldest)],
      ['Last seen', page.time(newest.last_seen_at)],
      ['Websites', [...new Set(visits.map(({ tracker_id }) => nameOf(tracker_id)))].join(', ')],
    ])}
    ${known('Company', newest.company)}
    ${ui.table(
      `Sessions of the last ${SESSIONS_KEPT_DAYS} days, the latest first`,
      ['Session', 'Website', 'Country', 'Receipt'],
      visits.map((row) => [
        html`<a href="/dashboard/sessions/${row.session_id}">${page.time(row.first_seen_at)}</a>`,
        nameOf(row.tracker_id),
        countryName(row.visitor_country),
        html`<a href="/dashboard/reveals/${row.reveal_id}">Receipt</a>`,
      ]),
    )}
    ${visits.length === MAX_VISITS && html`<p class="soft">The newest ${ui.count(MAX_VISITS)} sessions are shown.</p>`}`,
  });
}

/** Sessions of a company on its page. */
const MAX_VISITS = 200;
