import { searchKey } from '../../../domain/kernel/text.ts';
import type { Reply } from '../../../http/contract/route.ts';
import { listRevealsOf, type RevealOfSession } from '../../../queries/reveals/reveals.ts';
import type { SessionBody } from '../../../read-api/sessions/schemas.ts';
import {
  type FoundSessions,
  type SessionSearch,
  searchSessions,
} from '../../../read-api/sessions/sessions.ts';
import { listTrackers, mayChange, type PageContext, plainText, type Refused } from '../api.ts';
import * as ui from '../components.ts';
import { type Content, type Html, html } from '../components.ts';
import { countryCode, countryName } from '../countries.ts';
import { show } from '../layout.ts';
import { chips, filterMenu, picker, scopePickers } from '../pickers.ts';
import { get, type PageRoute } from '../routes.ts';
import { linkTo, SESSIONS_KEPT_DAYS } from '../scope.ts';
import { companyLink } from './overview.ts';

const PATH = '/dashboard/sessions';

export const sessionPages: readonly PageRoute[] = [
  get(PATH, (page) => list(page)),
  get(`${PATH}/:session_id`, one),
];

/** Reads the reveals of sessions of the partner, with those that were asked for a moment ago. */
export async function readRevealsOf(
  { reads, user }: PageContext,
  sessionIds: readonly string[],
): Promise<readonly RevealOfSession[]> {
  await reads.waitForHead(['sessions', 'reveals'])();
  return listRevealsOf(reads.db, user.partner_id, sessionIds);
}

async function search(page: PageContext, wanted: SessionSearch): Promise<FoundSessions | null> {
  const { reads, user, request } = page;
  await reads.waitForHead(['sessions', 'reveals'])();
  return searchSessions(reads, user.partner_id, wanted, request.receivedAt);
}

const REVEALED = [
  ['', 'All sessions'],
  ['yes', 'Revealed'],
  ['no', 'Not revealed'],
] as const;

const FILTER_NAMES = { company: 'Company', country: 'Country', label: 'Label' } as const;

/** The filters of the list, as they stand in its address. `wanted` null: one of them is not understood. */
function filtersIn({ query }: PageContext) {
  const given = (name: string): string => plainText(query.get(name)).slice(0, 200);
  const filters = {
    country: given('country'),
    revealed: given('revealed'),
    company: given('company'),
    label: given('label'),
  };
  const country = searchKey(filters.country) === 'unknown' ? 'unknown' : countryCode(filters.country);
  const isCountryWrong = filters.country !== '' && country === null;
  const isWrong = isCountryWrong || !REVEALED.some(([value]) => value === filters.revealed);
  const wanted = { ...filters, country: country ?? '' } as Pick<SessionSearch, keyof typeof filters>;
  return { filters, isCountryWrong, wanted: isWrong ? null : wanted };
}

const countryError = (text: string): string => `“${text}” is no country, so nothing is found.`;

async function list(page: PageContext, refused: Refused = null): Promise<Reply> {
  const { period, trackerId, query: scopeQuery } = page.scope;
  const { filters, isCountryWrong, wanted } = filtersIn(page);
  const before = page.query.get('before');
  const [{ trackers, failed }, listed] = await Promise.all([
    listTrackers(page),
    wanted &&
      search(page, {
        trackerId,
        before,
        from: period.from,
        to: period.to,
        ...Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== '')),
      }),
  ]);
  const { sessions, older, isCutShort } = listed ?? { sessions: [], older: null, isCutShort: false };
  const reveals = Map.groupBy(
    await completedReveals(
      page,
      sessions.map(({ session_id }) => session_id),
    ),
    ({ session_id }) => session_id,
  );
  const isFiltered = Object.values(filters).some((value) => value !== '');
  const empty =
    isFiltered || before !== null || page.scope.trackerId !== null || trackers.length > 0
      ? ui.nothingYet(
          before === null ? 'No sessions match' : 'No older sessions',
          html`${period.text}${isFiltered && ', with these filters'}. Sessions are kept for ${SESSIONS_KEPT_DAYS} days.
            <a href="${linkTo(PATH, { period: '30d' })}">Show all sessions</a> or see
            <a href="/dashboard/trackers">whether your websites send visits</a>.`,
        )
      : ui.nothingYet(
          'No sessions yet',
          html`Sessions appear as soon as a page with the snippet of a website is visited.
            ${mayChange(page) ? html`<a href="/dashboard/trackers">Add a website</a>.` : ui.OTHERS_ADD}`,
        );
  const next =
    older === null
      ? null
      : {
          path: PATH,
          query: { ...scopeQuery, ...filters, before: older },
          text: isCutShort ? 'Search further back' : 'Older sessions',
        };
  const found = isCutShort
    ? `${ui.counted(sessions.length, 'session')} found so far, among those searched in this step.`
    : `${ui.counted(sessions.length, 'session')}${older === null ? '' : ', and more'}.`;
  return show(page, {
    title: 'Sessions',
    section: 'Sessions',
    showsCountry: true,
    refused: refused ?? failed,
    pickers: html`${filterMenu(
      page,
      ['company', 'country', 'label'],
      html`${ui.field('Company name', 'company', { value: filters.company, maxlength: 200 })}
      ${ui.field('Country', 'country', {
        value: filters.country,
        maxlength: 200,
        placeholder: 'Germany, DE or unknown',
        ...(isCountryWrong ? { error: countryError(filters.country) } : {}),
      })}
      ${ui.field('Label', 'label', { value: filters.label, maxlength: 200, placeholder: 'plan: pro' })}`,
    )}${picker(page, 'Revealed', 'revealed', REVEALED, filters.revealed)}${scopePickers(page, trackers)}`,
    chips: chips(
      page,
      (['company', 'country', 'label'] as const).map(
        (name) =>
          filters[name] !== '' && {
            text: `${FILTER_NAMES[name]}: ${filters[name]}`,
            names: [name],
            error: name === 'country' && isCountryWrong && countryError(filters.country),
          },
      ),
    ),
    content: html`<div id="sessions"${before === null && html` data-live`}>
    ${sessions.length === 0 ? empty : sessionTable(page, sessions, reveals, ui.namesOfTrackers(trackers), linkTo(PATH, scopeQuery, filters))}
    ${(sessions.length > 0 || next !== null) && ui.pager(found, next)}
    </div>
    ${before === null && html`<p class="soft" data-while-live>The list looks for new sessions every five seconds while nothing is ticked. <a href="${linkTo(PATH, scopeQuery, filters)}">Look now</a></p>`}`,
  });
}

/** A pending reveal whose result has arrived completes when its receipt is read, so the receipts of a page are read. */
async function completedReveals(
  page: PageContext,
  sessionIds: readonly string[],
): Promise<readonly RevealOfSession[]> {
  const reveals = await readRevealsOf(page, sessionIds);
  const pending = reveals.filter(({ completed_at }) => completed_at === null);
  if (pending.length === 0) return reveals;
  await Promise.all(
    pending
      .slice(0, RECEIPTS_READ)
      .map(({ reveal_id }) => page.api('GET', '/v1/reveals/:reveal_id', { params: { reveal_id } })),
  );
  return readRevealsOf(page, sessionIds);
}

const RECEIPTS_READ = 25;

function sessionTable(
  page: PageContext,
  sessions: readonly SessionBody[],
  reveals: ReadonlyMap<string, readonly RevealOfSession[]>,
  nameOf: (trackerId: string) => string,
  here: string,
): Content {
  const heads = ['Visitor', 'Website', 'Country', 'Labels', 'Seen'];
  const rows = sessions.map((session) => [
    visitorLink(session, reveals.get(session.session_id) ?? []),
    nameOf(session.tracker_id),
    countryName(session.visitor_country),
    fewLabels(session),
    page.ago(session.last_seen_at),
  ]);
  const caption = 'Sessions, the newest first';
  if (!mayChange(page)) return ui.table(caption, heads, rows, { minor: [3] });
  const boxes = rows.map((cells, nth) => [
    html`<input type="checkbox" name="session_id" value="${sessions[nth]?.session_id}" aria-label="Select session ${nth + 1}">`,
    ...cells,
  ]);
  return html`<form method="get" action="${PATH}/reveal"><input type="hidden" name="back" value="${here}">${ui.table(
    caption,
    [
      html`<input type="checkbox" data-all="session_id" aria-label="Select all sessions" hidden><span class="unseen">Select</span>`,
      ...heads,
    ],
    boxes,
    { hasBoxes: true, minor: [4] },
  )}<p class="below"><button class="quiet">Reveal the selected sessions…</button></p></form>`;
}

/** A visitor may send 32 labels: a list shows the first few, a session's own page all. */
const LABELS_LISTED = 3;
const LABEL_LISTED = 40;

const labelsOf = ({ custom = {} }: SessionBody): readonly string[] =>
  Object.entries(custom).map(([name, value]) => `${name}: ${value}`);

/** A visitor writes them: a mark of direction in one does not turn the others. */
const chipsOf = (labels: readonly string[], more = 0): Content =>
  html`<span class="labels">${labels.map((label) => html`<bdi class="chip">${label}</bdi>`)}${more > 0 && html`<span class="soft">+${more}</span>`}</span>`;

function fewLabels(session: SessionBody): Content {
  const labels = labelsOf(session);
  const shown = labels.slice(0, LABELS_LISTED).map((label) => shortened(label, LABEL_LISTED));
  return labels.length === 0 ? null : chipsOf(shown, labels.length - LABELS_LISTED);
}

const shortened = (text: string, length: number): string =>
  [...text].length > length ? `${[...text].slice(0, length - 1).join('')}…` : text;

/** What is known of a visitor: a company is only what the match says is one. */
function visitorOf(reveals: readonly RevealOfSession[]): Content {
  const done = reveals.findLast(({ completed_at }) => completed_at !== null);
  if (done === undefined)
    return reveals.length > 0 ? ui.badge('pending', 'wait') : html`<span class="soft">Not revealed</span>`;
  return done.match_type === 'company' && done.name !== null
    ? companyLink({ name: done.name }, {})
    : html`<span class="soft">${networkText(done)}</span>`;
}

/** The session by what is known of its visitor; quiet where that is nothing. */
function visitorLink({ session_id }: SessionBody, reveals: readonly RevealOfSession[]): Content {
  const done = reveals.findLast(({ completed_at }) => completed_at !== null);
  const link = (text: string, isQuiet = true): Html =>
    html`<a href="${PATH}/${session_id}"${isQuiet && html` class="quiet-link"`}>${text}</a>`;
  if (done === undefined) return link(reveals.length > 0 ? 'Pending' : 'Not revealed');
  const { match_type, name } = done;
  return match_type === 'company' && name !== null ? link(name, false) : link(networkText(done));
}

/** What a reveal without a company found. */
export function networkText({ match_type, name }: Pick<RevealOfSession, 'match_type' | 'name'>): string {
  if (match_type === 'company') return 'company without a name';
  if (match_type === 'isp') return name === null ? 'internet provider' : `internet provider: ${name}`;
  return name === null ? 'no company found' : `no company found: ${name}`;
}

async function one(page: PageContext): Promise<Reply> {
  const [found, { trackers }] = await Promise.all([
    page.api<SessionBody>('GET', '/v1/sessions/:session_id'),
    listTrackers(page),
  ]);
  if (!found.ok) return list(page, found);
  const session = found.body;
  const reveals = await completedReveals(page, [session.session_id]);
  const done = reveals.some(({ completed_at }) => completed_at !== null);
  return show(page, {
    title: 'Session',
    section: 'Sessions',
    up: [listBefore(page), 'Sessions'],
    showsCountry: true,
    ...(mayChange(page)
      ? {
          actions: html`<a class="button${done && ' quiet'}" href="${PATH}/${session.session_id}/reveal">${done ? 'Reveal once more…' : 'Reveal the company…'}</a>`,
        }
      : {}),
    content: html`${ui.facts([
      ['Company', visitorOf(reveals)],
      ['First seen', page.time(session.first_seen_at)],
      ['Last seen', page.time(session.last_seen_at)],
      ['Country', countryName(session.visitor_country)],
      [
        'Website',
        html`<a href="/dashboard/trackers/${session.tracker_id}">${ui.namesOfTrackers(trackers)(session.tracker_id)}</a>`,
      ],
      ['Your reference', session.customer_reference ?? '–'],
      ['Labels', labelsOf(session).length > 0 ? chipsOf(labelsOf(session)) : '–'],
      ['Kept until', page.time(session.expires_at)],
      ['Id', html`<code>${session.session_id}</code>`],
    ])}
    ${
      reveals.length > 0 &&
      ui.table(
        'Reveals of this session',
        ['Receipt', 'Asked', 'Completed', 'Found', 'Units'],
        reveals.map((reveal) => [
          html`<a href="/dashboard/reveals/${reveal.reveal_id}">${reveal.reveal_id.slice(0, 8)}</a>`,
          page.time(reveal.created_at),
          page.time(reveal.completed_at, 'pending'),
          reveal.completed_at === null ? '–' : visitorOf([reveal]),
          reveal.completed_at === null ? '–' : reveal.billable ? '1' : '0',
        ]),
        { numeric: [4] },
      )
    }`,
  });
}

/** The list that the reader comes from, with its filters. */
function listBefore({ request, scope }: PageContext): string {
  const from = request.header('referer') ?? '';
  if (!URL.canParse(from)) return linkTo(PATH, scope.query);
  const { pathname, search } = new URL(from);
  return pathname === PATH ? `${PATH}${search}` : linkTo(PATH, scope.query);
}
