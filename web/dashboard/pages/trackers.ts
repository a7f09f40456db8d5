import type { Reply } from '../../../http/contract/route.ts';
import type { TrackerBody, TrackerUsageBody } from '../../../read-api/trackers/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { errorAnswer, listTrackers, mayChange, type PageContext, type Refused, textOf } from '../api.ts';
import { dayLabel, lineChart, sparkline } from '../charts.ts';
import * as ui from '../components.ts';
import { type Content, html } from '../components.ts';
import { show } from '../layout.ts';
import { respelled, taken } from '../origins.ts';
import { changed, periodPicker } from '../pickers.ts';
import { action, type Found, type Resource, resourceRoutes, showOne } from '../resource.ts';
import { get, type PageRoute, post } from '../routes.ts';
import { linkTo } from '../scope.ts';
import { lastDays } from '../times.ts';
import {
  addOriginPage,
  findingsOf,
  installCheck,
  installState,
  readEvidence,
  readPixels,
} from './install-check.ts';
import { sum } from './overview.ts';

const PATH = '/dashboard/trackers';
const ONE = `${PATH}/:tracker_id`;

const TRACKER = '/v1/trackers/:tracker_id';

const website: Resource<TrackerBody> = {
  path: ONE,
  find,
  missing: (page, why, refused) => list(page, refused ?? why),
  show: (page, tracker, refused) =>
    refused === null ? overview(page, tracker) : settings(page, tracker, refused),
  actions: [
    action(
      'change',
      'member',
      (page) => page.api('PATCH', TRACKER, { body: bodyIn(page) }),
      'tracker-changed',
    ),
    action('disable', 'member', ({ api }) => api('DELETE', TRACKER), 'tracker-disabled', {
      leadsTo: `${ONE}/settings`,
    }),
    action('enable', 'member', ({ api }) => api('POST', `${TRACKER}/enable`), 'tracker-enabled', {
      leadsTo: `${ONE}/settings`,
    }),
    action('delete', 'member', ({ api }) => api('POST', `${TRACKER}/delete`), 'tracker-deleted', {
      ask: askDelete,
      leadsTo: PATH,
    }),
  ],
};

function askDelete(_page: PageContext, { name }: TrackerBody) {
  return {
    title: `Delete “${name}”?`,
    section: 'Websites',
    text: html`<p>Its pixel collects nothing more, and the website cannot be brought back. Sessions, receipts and usage stay
        readable until they expire.</p>`,
    button: 'Delete the website',
  } as const;
}

/** The partner's websites, which the API calls trackers: all of them, and one with its figures, installation and settings. */
export const trackerPages: readonly PageRoute[] = [
  get(PATH, (page) => list(page)),
  get(`${PATH}/new`, (page) => addPage(page), { needs: 'member' }),
  post(PATH, 'member', create),
  ...resourceRoutes(website),
  get(`${ONE}/install`, (page) => showOne({ ...website, show: install }, page)),
  get(`${ONE}/settings`, (page) => showOne({ ...website, show: settings }, page), { needs: 'member' }),
  addOriginPage,
];

/** Days of the line that a list shows. */
export const LINE_DAYS = 7;

async function list(page: PageContext, refused: Refused = null): Promise<Reply> {
  const { reads, user, request } = page;
  const days = lastDays(LINE_DAYS, request.receivedAt);
  const range = { from: `${days[0]}T00:00:00.000Z`, to: new Date(request.receivedAt).toISOString() };
  const [{ trackers, failed }, rows] = await Promise.all([
    listTrackers(page),
    reads.trackerDays(user.partner_id, null, range),
  ]);
  const shown = ui.searched(page, trackers, ({ name, origins, customer_reference }) =>
    [name, ...origins, customer_reference ?? ''].join(' '),
  );
  const pixels = await readPixels(page, shown);
  const byTracker = Map.groupBy(rows, ({ tracker_id }) => tracker_id);
  return show(page, {
    title: 'Websites',
    section: 'Websites',
    refused: refused ?? failed,
    pickers: trackers.length > FEW && ui.searchForm(page),
    actions:
      mayChange(page) && trackers.length > 0 && html`<a class="button" href="${PATH}/new">Add a website</a>`,
    content:
      trackers.length > 0 && shown.length === 0
        ? ui.noMatch(PATH)
        : ui.tableOr(
            ui.nothingYet(
              'No websites yet',
              mayChange(page) ? 'Add the first one, then put its snippet on the pages.' : ui.OTHERS_ADD,
              mayChange(page) && html`<a class="button" href="${PATH}/new">Add a website</a>`,
            ),
            ui.counted(shown.length, 'website'),
            ['Website', 'State', 'Origins', 'Last 7 days', 'Visits', 'Last visit'],
            pixels.map(({ tracker, lastVisit, state, fault }) => {
              const its = byTracker.get(tracker.id) ?? [];
              const visits = days.map((day) => sum(its, (row) => (row.day === day ? row.visits : 0)));
              return [
                html`<a href="${linkTo(`${PATH}/${tracker.id}`, page.scope.query)}">${tracker.name}</a>${tracker.customer_reference !== null && html` <small>${tracker.customer_reference}</small>`}`,
                html`${state}${fault !== null && html` <small>${fault}</small>`}`,
                ui.fewOf(tracker.origins, 1),
                sparkline(visits, 'Visits of the last 7 days'),
                ui.count(sum(visits, Number)),
                page.ago(lastVisit),
              ];
            }),
            { numeric: [4], minor: [2], isWhole: true },
          ),
  });
}

function addPage(page: PageContext, refused: Refused = null): Reply {
  return show(page, {
    title: 'Add a website',
    section: 'Websites',
    up: [PATH, 'Websites'],
    refused,
    content: ui.panel(
      'The website',
      ui.form(
        page,
        PATH,
        html`${trackerFields(page, { name: '', origins: [], customer_reference: null }, refused)}
        <button>Add the website</button>`,
      ),
    ),
  });
}

const FEW = 10;
/** The fields of a form, as they were sent or else as they stand; of websites that were refused, the spelling that is meant. */
function trackerFields(
  page: PageContext,
  stored: Pick<TrackerBody, 'name' | 'origins' | 'customer_reference'>,
  refused: Refused,
) {
  const isSent = page.form.has('origins');
  const { name, reference, origins } = isSent
    ? sent(page)
    : { ...stored, reference: stored.customer_reference ?? '' };
  const changes = refused?.code === 'invalid_origin' ? respelled(origins) : [];
  const meant = new Map(changes);
  const lines = new Set(origins.flatMap((line) => (meant.get(line)?.length ? meant.get(line) : [line])));
  return html`${ui.field('Name', 'name', { value: name, required: true, maxlength: 200 })}
    <div class="field"><label for="origins">Origins</label>
      <textarea id="origins" name="origins" rows="3" required aria-describedby="origins-hint">${[...lines].join('\n')}</textarea>
      ${changes.length > 0 && respellings(changes)}
      <small id="origins-hint">One a line: <code>www.example.com</code>, or
      <code>*.example.com</code> for every subdomain. Pages over https alone are measured.</small></div>
    ${ui.field('Your reference', 'customer_reference', { value: reference, maxlength: 200, hint: 'Optional: what you call this customer.' })}`;
}

const respellings = (
  changes: ReturnType<typeof respelled>,
) => html`<div class="notice wait"><p>These lines are not origins. Check
    the corrected list above, then send the form again:</p>
  <ul>${changes.map(([line, meant]) => html`<li><code>${line}</code> ${meant.length === 0 ? 'is no website: write it as https://www.example.com' : html`means ${meant.map((origin, nth) => html`${nth > 0 && ' and '}<code>${origin}</code>`)}`}</li>`)}</ul></div>`;

const sent = (page: PageContext) => ({
  name: textOf(page, 'name'),
  reference: textOf(page, 'customer_reference'),
  origins: textOf(page, 'origins').split(/\s+/).filter(Boolean),
});

const bodyIn = (page: PageContext) => {
  const { name, reference, origins } = sent(page);
  return { name, origins: taken(origins), customer_reference: reference === '' ? null : reference };
};

/** Home's first step asks for the website alone, whose host is its name then, and goes on there. */
async function create(page: PageContext): Promise<Reply> {
  const body = bodyIn(page);
  const isStart = textOf(page, 'from') === 'start';
  const name = isStart ? (body.origins[0] ?? '').replace(/^https?:\/\//, '').slice(0, 200) : body.name;
  const made = await page.api<TrackerBody>('POST', '/v1/trackers', { body: { ...body, name } });
  if (made.ok && isStart) return redirectAfterPost('/dashboard', 'tracker-created');
  return made.ok ? redirectAfterPost(`${PATH}/${made.body.id}`, 'tracker-created') : addPage(page, made);
}

const MISSING = errorAnswer(404, 'tracker_not_found', 'There is no such website, or it is deleted.');

async function find(page: PageContext): Promise<Found<TrackerBody>> {
  const { trackers, failed } = await listTrackers(page);
  const tracker = trackers.find(({ id }) => id === page.request.params.tracker_id);
  return failed ?? (tracker === undefined ? MISSING : { ok: true, body: tracker });
}

/** The API tells at most so many days of usage. */
const MAX_DAYS = 31;

/** What the pages of one website have in common. */
const head = ({ id, name }: TrackerBody, tab: '' | '/install' | '/settings', page: PageContext) => ({
  title: name,
  section: 'Websites' as const,
  up: [PATH, 'Websites'] as const,
  tabs: {
    pages: [
      [`${PATH}/${id}`, 'Overview'],
      [`${PATH}/${id}/install`, 'Install'],
      ...(mayChange(page) ? [[`${PATH}/${id}/settings`, 'Settings'] as const] : []),
    ] as const,
    here: `${PATH}/${id}${tab}`,
  },
});

/** The figures of a website; of one that has never had a visit, how to install its snippet. */
async function overview(page: PageContext, tracker: TrackerBody): Promise<Reply> {
  const days = page.scope.period.days.slice(-MAX_DAYS);
  const [usage, evidence] = await Promise.all([
    days.length === 0
      ? null
      : page.api<TrackerUsageBody>('GET', `${TRACKER}/usage`, {
          query: { from: days[0], to: page.scope.period.to.slice(0, 10) },
        }),
    readEvidence(page.reads, tracker.id),
  ]);
  if (evidence.lastVisitHour === null) return install(page, tracker, null, '');
  return show(page, {
    ...head(tracker, '', page),
    state: installState(page, tracker, evidence),
    refused: usage === null || usage.ok ? null : usage,
    pickers: periodPicker(page),
    content: html`${findingsOf(page, tracker, evidence)}
    ${usage?.ok && figures(page, usage.body, days)}
    ${ui.facts([
      ['Origins', tracker.origins.join(', ')],
      ['Last visit', page.ago(evidence.visits?.last_at ?? evidence.lastVisitHour)],
      ['Your reference', tracker.customer_reference ?? '–'],
      ['Added', page.time(tracker.created_at)],
      [
        'Sessions',
        html`<a href="${linkTo('/dashboard/sessions', page.scope.query, { tracker_id: tracker.id })}">Sessions of this website</a>`,
      ],
      ['Id', html`<code>${tracker.id}</code>`],
    ])}`,
  });
}

/** The figures of a website, of which sessions and reveals are known by the day. */
function figures(page: PageContext, { hourly, totals }: TrackerUsageBody, days: readonly string[]): Content {
  const here = page.query.get('figure') === 'reveals' ? 'reveals' : 'sessions';
  const name = here === 'reveals' ? 'Reveals' : 'Sessions';
  const points = days.map((day) => ({
    label: dayLabel(day),
    values: [
      sum(
        hourly.filter(({ hour }) => hour.startsWith(day)),
        (row) => row[here],
      ),
    ],
  }));
  return html`<div class="join">${ui.tiles(
    [
      { name: 'Sessions', value: ui.count(totals.sessions), href: changed(page, { figure: '' }) },
      { name: 'Reveals', value: ui.count(totals.reveals), href: changed(page, { figure: 'reveals' }) },
      { name: 'Visits', value: ui.count(totals.capture_requests) },
      { name: 'Units', value: ui.count(totals.billable_reveals) },
    ],
    name,
  )}${lineChart({ title: `${name} a day`, axis: 'Day', series: [{ name }], points })}</div>`;
}

/** The snippet of a website, and whether it works. `refused` is always null: nothing is sent from here. */
async function install(
  page: PageContext,
  tracker: TrackerBody,
  _refused: Refused = null,
  tab: '' | '/install' = '/install',
): Promise<Reply> {
  const evidence = await readEvidence(page.reads, tracker.id);
  return show(page, {
    ...head(tracker, tab, page),
    state: installState(page, tracker, evidence),
    content: html`${ui.panel(
      'Snippet',
      html`<p>Put this into every page, before <code>&lt;/body&gt;</code> for example:</p>${ui.copyable('Snippet', tracker.snippet)}
      <p class="soft">It can come from a host name of your customer: <a href="/dashboard/domains?tracker_id=${tracker.id}">custom domains</a>.</p>`,
    )}
    ${installCheck(page, tracker, evidence)}`,
  });
}

function settings(page: PageContext, tracker: TrackerBody, refused: Refused = null): Reply {
  const at = `${PATH}/${tracker.id}`;
  const isOn = tracker.disabled_at === null;
  return show(page, {
    ...head(tracker, '/settings', page),
    refused,
    content: html`${ui.panel(
      'Website',
      ui.form(
        page,
        `${at}/change`,
        html`${trackerFields(page, tracker, refused)}
      <p class="soft">Visits are accepted from these origins within a second. The snippet stays.</p>
      <button>Save</button>`,
      ),
    )}
    ${ui.panel(
      isOn ? 'Disable' : 'Enable',
      isOn
        ? ui.form(
            page,
            `${at}/disable`,
            html`<p>A disabled website takes no visits. Its sessions stay. Once it is disabled it can be deleted.</p>
          <button class="quiet">Disable the website</button>`,
          )
        : ui.form(
            page,
            `${at}/enable`,
            html`<p>Visits are accepted again.</p><button>Enable the website</button>`,
          ),
    )}
    ${
      !isOn &&
      html`<section class="panel danger"><h2>Delete</h2><p>The website cannot be brought back. Sessions and usage stay readable until they expire.</p>
        <p><a class="button danger" href="${at}/delete">Delete the website…</a></p></section>`
    }`,
  });
}
