import type { Reply } from '../../../http/contract/route.ts';
import type { SessionBody } from '../../../read-api/sessions/schemas.ts';
import { listTrackers, type Refused, type Visit } from '../api.ts';
import {
  badge,
  type Content,
  facts,
  html,
  namesOfTrackers,
  nothingYet,
  table,
  tableOr,
  trackerSelect,
} from '../components.ts';
import { show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';

export interface RevealOfSession {
  readonly reveal_id: string;
  readonly session_id: string;
  readonly created_at: string;
  readonly completed_at: string | null;
  readonly billable: boolean | null;
  readonly company: string | null;
}

export interface SessionDeps {
  /** Newest first. `before` is an `older` of the same list; null: it is none. */
  readonly recent: (
    visit: Visit,
    trackerId: string | null,
    before: string | null,
  ) => Promise<{ readonly sessions: readonly SessionBody[]; readonly older: string | null } | null>;
  readonly revealsOf: (
    partnerId: string,
    sessionIds: readonly string[],
  ) => Promise<readonly RevealOfSession[]>;
}

const PATH = '/dashboard/sessions';

export const sessionPages = (deps: SessionDeps): PageRoute[] => [
  { method: 'GET', path: PATH, handle: (visit) => feed(deps, visit) },
  { method: 'GET', path: `${PATH}/:session_id`, handle: (visit) => one(deps, visit) },
];

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function feed(deps: SessionDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const asked = visit.query.get('tracker_id') ?? '';
  const trackerId = UUID.test(asked) ? asked : null;
  const before = visit.query.get('before');
  const [{ trackers, failed }, page] = await Promise.all([
    listTrackers(visit),
    deps.recent(visit, trackerId, before),
  ]);
  const { sessions, older } = page ?? { sessions: [], older: null };
  const reveals = await deps.revealsOf(
    visit.user.partner_id,
    sessions.map(({ session_id }) => session_id),
  );
  const name = namesOfTrackers(trackers);
  return show(visit, {
    title: 'Sessions',
    section: 'Sessions',
    showsCountry: true,
    refused: refused ?? failed,
    content: html`<form class="filter" method="get" action="${PATH}">
      ${trackerSelect(trackers, trackerId ?? '', 'All trackers')}
      <button class="quiet">Show</button></form>
    ${tableOr(
      before === null
        ? noSessions
        : nothingYet('No older sessions', html`<a href="${PATH}">Back to the newest</a>`),
      'Sessions, the newest first',
      ['First seen', 'Last seen', 'Tracker', 'Country', 'Labels', 'Company'],
      sessions.map((session) => [
        html`<a href="${PATH}/${session.session_id}">${visit.time(session.first_seen_at)}</a>`,
        visit.time(session.last_seen_at),
        name(session.tracker_id),
        session.visitor_country ?? 'unknown',
        fewLabels(session),
        companyOf(reveals.filter(({ session_id }) => session_id === session.session_id)),
      ]),
    )}
    ${older !== null && html`<p><a class="button quiet" href="${PATH}?${new URLSearchParams({ tracker_id: trackerId ?? '', before: older }).toString()}">Older sessions</a></p>`}`,
  });
}

const noSessions = nothingYet(
  'No sessions yet',
  html`Sessions appear as soon as a page with the snippet of a <a href="/dashboard/trackers">tracker</a> is visited.`,
);

/** A visitor may send 32 labels: a list shows the first few, a session's own page all. */
const LABELS_LISTED = 3;
const LABEL_LISTED = 40;

const labelsOf = ({ custom = {} }: SessionBody): readonly string[] =>
  Object.entries(custom).map(([name, value]) => `${name}: ${value}`);

function fewLabels(session: SessionBody): Content {
  const labels = labelsOf(session);
  const shown = labels.slice(0, LABELS_LISTED).map((label) => shortened(label, LABEL_LISTED));
  const more = labels.length - shown.length;
  return `${shown.join(', ')}${more > 0 ? ` +${more}` : ''}`;
}

const shortened = (text: string, length: number): string =>
  [...text].length > length ? `${[...text].slice(0, length - 1).join('')}…` : text;

function companyOf(reveals: readonly RevealOfSession[]): Content {
  const done = reveals.find(({ completed_at }) => completed_at !== null);
  if (done) return done.company ?? 'no company found';
  return reveals.length > 0 ? badge('pending', 'wait') : badge('not revealed', 'off');
}

async function one(deps: SessionDeps, visit: Visit): Promise<Reply> {
  const session_id = visit.request.params.session_id ?? '';
  const found = await visit.api<SessionBody>('GET', '/v1/sessions/:session_id', { params: { session_id } });
  if (!found.ok) return feed(deps, visit, found);
  const session = found.body;
  const reveals = await deps.revealsOf(visit.user.partner_id, [session.session_id]);
  const done = reveals.some(({ completed_at }) => completed_at !== null);
  return show(visit, {
    title: 'Session',
    section: 'Sessions',
    showsCountry: true,
    content: html`${facts([
      ['First seen', visit.time(session.first_seen_at)],
      ['Last seen', visit.time(session.last_seen_at)],
      ['Kept until', visit.time(session.expires_at)],
      ['Country of the visitor', session.visitor_country ?? 'unknown'],
      [
        'Tracker',
        html`<a href="/dashboard/trackers/${session.tracker_id}"><code>${session.tracker_id}</code></a>`,
      ],
      ['Your reference', session.customer_reference ?? '–'],
      ['Labels', labelsOf(session).join(', ') || '–'],
      ['Id', html`<code>${session.session_id}</code>`],
    ])}
    <section><h2>Company</h2>
      ${
        reveals.length > 0 &&
        table(
          'Reveals of this session',
          ['Asked', 'Completed', 'Company', 'Units', ''],
          reveals.map((reveal) => [
            visit.time(reveal.created_at),
            visit.time(reveal.completed_at, 'pending'),
            reveal.completed_at === null ? '–' : (reveal.company ?? 'no company found'),
            reveal.completed_at === null ? '–' : reveal.billable ? '1' : '0',
            html`<a href="/dashboard/reveals/${reveal.reveal_id}">Receipt</a>`,
          ]),
        )
      }
      <p><a class="button${done && ' quiet'}" href="${PATH}/${session.session_id}/reveal">${done ? 'Reveal once more…' : 'Reveal the company…'}</a></p>
    </section>
    <p><a href="${PATH}">All sessions</a></p>`,
  });
}
