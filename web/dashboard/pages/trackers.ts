import type { Reply } from '../../../http/contract/route.ts';
import type { TrackerBody, TrackerUsageBody } from '../../../read-api/trackers/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { errorAnswer, listTrackers, mayChange, type PageContext, type Refused, textOf } from '../api.ts';
import { barChart, dayLabel } from '../charts.ts';
import {
  badge,
  copyable,
  count,
  counted,
  facts,
  field,
  form,
  html,
  noMatch,
  nothingYet,
  OTHERS_ADD,
  periodFields,
  searched,
  searchForm,
  tableOr,
} from '../components.ts';
import { show } from '../layout.ts';
import { respelled, taken } from '../origins.ts';
import { action, type Found, type Resource, resourceRoutes } from '../resource.ts';
import { get, type PageRoute, post } from '../routes.ts';
import { linkTo } from '../scope.ts';
import { addOriginPage, findBroken, installCheck, readEvidence } from './install-check.ts';

const PATH = '/dashboard/trackers';

const TRACKER = '/v1/trackers/:tracker_id';

const trackers: Resource<TrackerBody> = {
  path: `${PATH}/:tracker_id`,
  find,
  missing: (page, why, refused) => list(page, refused ?? why),
  show: showTracker,
  actions: [
    action(
      'change',
      'member',
      (page) => page.api('PATCH', TRACKER, { body: bodyIn(page) }),
      'tracker-changed',
    ),
    action('disable', 'member', ({ api }) => api('DELETE', TRACKER), 'tracker-disabled'),
    action('enable', 'member', ({ api }) => api('POST', `${TRACKER}/enable`), 'tracker-enabled'),
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
    text: html`<p>Its pixel collects nothing more, and it cannot be brought back. Sessions, receipts and usage stay
        readable until they expire.</p>`,
    button: 'Delete the tracker',
  } as const;
}

/** The partner's trackers, pixels on customers' websites: all of them, and one with its snippet, installation check and usage. */
export const trackerPages: readonly PageRoute[] = [
  get(PATH, (page) => list(page)),
  post(PATH, 'member', create),
  ...resourceRoutes(trackers),
  addOriginPage,
];

async function list(page: PageContext, refused: Refused = null): Promise<Reply> {
  const { trackers, failed } = await listTrackers(page);
  const shown = searched(page, trackers, ({ name, origins, customer_reference }) =>
    [name, ...origins, customer_reference ?? ''].join(' '),
  );
  const broken = new Map(
    (await findBroken(page, shown)).map(({ tracker, seen }) => [tracker.id, seen] as const),
  );
  return show(page, {
    title: 'Websites',
    section: 'Websites',
    refused: refused ?? failed,
    content: html`${trackers.length > FEW && searchForm(page)}
    ${
      trackers.length > 0 && shown.length === 0
        ? noMatch(PATH)
        : tableOr(
            nothingYet(
              'No websites yet',
              html`${mayChange(page) ? 'Add the first one below, then put its snippet on the pages.' : OTHERS_ADD}
                Doorplate calls the pixel of a website a tracker.`,
            ),
            `${counted(shown.length, 'website')}, each with its tracker`,
            ['Name', 'State', 'Origins', 'Your reference', 'Created'],
            shown.map((tracker) => [
              html`<a href="${linkTo(`${PATH}/${tracker.id}`, page.scope.query)}">${tracker.name}</a>`,
              broken.has(tracker.id)
                ? html`${badge('broken', 'bad')} <small>${broken.get(tracker.id)}</small>`
                : stateOf(tracker),
              fewOf(tracker.origins),
              tracker.customer_reference ?? '–',
              page.time(tracker.created_at),
            ]),
          )
    }
    ${
      mayChange(page) &&
      html`<section class="panel" id="create"><h2>Add a website</h2>${form(
        page,
        PATH,
        html`${trackerFields(page, { name: '', origins: [], customer_reference: null }, refused)}
      <button>Create the tracker</button>`,
      )}</section>`
    }`,
  });
}

const FEW = 10;
const ORIGINS_LISTED = 2;

const fewOf = (origins: readonly string[]): string =>
  `${origins.slice(0, ORIGINS_LISTED).join(', ')}${origins.length > ORIGINS_LISTED ? ` +${origins.length - ORIGINS_LISTED}` : ''}`;

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
  return html`${field('Name', 'name', { value: name, required: true, maxlength: 200 })}
    <div class="field"><label for="origins">Websites</label>
      <textarea id="origins" name="origins" rows="3" required aria-describedby="origins-hint">${[...lines].join('\n')}</textarea>
      ${changes.length > 0 && respellings(changes)}
      <small id="origins-hint">One a line: <code>www.example.com</code>, or
      <code>*.example.com</code> for every subdomain. Pages over https alone are measured.</small></div>
    ${field('Your reference', 'customer_reference', { value: reference, maxlength: 200, hint: 'Optional: what you call this customer.' })}`;
}

const respellings = (
  changes: ReturnType<typeof respelled>,
) => html`<div class="notice"><p>These lines are not origins. Check
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

const stateOf = ({ disabled_at }: TrackerBody) =>
  disabled_at === null ? badge('enabled', 'good') : badge('disabled', 'off');

/** Home's first step asks for the website alone, whose host is its name then, and goes on there. */
async function create(page: PageContext): Promise<Reply> {
  const body = bodyIn(page);
  const isStart = textOf(page, 'from') === 'start';
  const name = isStart ? (body.origins[0] ?? '').replace(/^https?:\/\//, '').slice(0, 200) : body.name;
  const made = await page.api<TrackerBody>('POST', '/v1/trackers', { body: { ...body, name } });
  if (made.ok && isStart) return redirectAfterPost('/dashboard', 'tracker-created');
  return made.ok ? redirectAfterPost(`${PATH}/${made.body.id}`, 'tracker-created') : list(page, made);
}

const MISSING = errorAnswer(404, 'tracker_not_found', 'There is no such tracker, or it is deleted.');

async function find(page: PageContext): Promise<Found<TrackerBody>> {
  const { trackers, failed } = await listTrackers(page);
  const tracker = trackers.find(({ id }) => id === page.request.params.tracker_id);
  return failed ?? (tracker === undefined ? MISSING : { ok: true, body: tracker });
}

/** The API tells at most so many days of usage. */
const MAX_DAYS = 31;

async function showTracker(page: PageContext, tracker: TrackerBody, refused: Refused): Promise<Reply> {
  const days = page.scope.period.days.slice(-MAX_DAYS);
  const [usage, evidence] = await Promise.all([
    days.length === 0
      ? null
      : page.api<TrackerUsageBody>('GET', `${TRACKER}/usage`, {
          query: { from: days[0], to: page.scope.period.to.slice(0, 10) },
        }),
    readEvidence(page.reads, tracker.id),
  ]);
  const at = `${PATH}/${tracker.id}`;
  return show(page, {
    title: tracker.name,
    section: 'Websites',
    refused: refused ?? (usage === null || usage.ok ? null : usage),
    content: html`${facts([
      ['State', stateOf(tracker)],
      ['Websites', tracker.origins.join(', ')],
      ['Your reference', tracker.customer_reference ?? '–'],
      ['Created', page.time(tracker.created_at)],
      ['Id', html`<code>${tracker.id}</code>`],
    ])}
    <p><a class="button" href="/dashboard/sessions?tracker_id=${tracker.id}">Its sessions</a>
      <a class="button quiet" href="/dashboard/domains?tracker_id=${tracker.id}">Its domains</a></p>
    <section><h2>Install</h2>
      <p>Put this into every page, before <code>&lt;/body&gt;</code> for example:</p>
      ${copyable('Snippet', tracker.snippet)}</section>
    ${installCheck(page, tracker, evidence)}
    ${usageOf(page, usage?.ok ? usage.body : null, days)}
    ${
      mayChange(page) &&
      html`<section><h2>Change</h2>${form(
        page,
        `${at}/change`,
        html`${trackerFields(page, tracker, refused)}
      <p>Visits are accepted from these websites within a second. The snippet stays.</p>
      <button>Save</button>`,
      )}</section>
    <section><h2>${tracker.disabled_at === null ? 'Disable' : 'Enable or delete'}</h2>${
      tracker.disabled_at === null
        ? form(
            page,
            `${at}/disable`,
            html`<p>A disabled tracker takes no visits. Its sessions stay.</p>
          <button class="quiet">Disable the tracker</button>`,
          )
        : html`${form(page, `${at}/enable`, html`<button>Enable the tracker</button>`)}
          <p><a class="button danger" href="${at}/delete">Delete the tracker…</a></p>`
    }</section>`
    }
    <p><a href="${PATH}">All trackers</a></p>`,
  });
}

function usageOf(page: PageContext, usage: TrackerUsageBody | null, days: readonly string[]) {
  const filter = html`<form class="filter" method="get">${periodFields(page)}<button class="quiet">Apply</button></form>`;
  if (usage === null) return html`<section><h2>Usage</h2>${filter}</section>`;
  const { hourly, totals, pending_reveals } = usage;
  const of = (day: string) => hourly.filter(({ hour }) => hour.startsWith(day));
  const sum = (day: string, name: 'sessions' | 'reveals') =>
    of(day).reduce((total, row) => total + row[name], 0);
  return html`<section><h2>Usage</h2>
    ${filter}
    ${facts([
      ['Visits reported', count(totals.capture_requests)],
      ['Sessions', count(totals.sessions)],
      ['Reveals', count(totals.reveals)],
      ['Units', count(totals.billable_reveals)],
      ['Reveals pending', count(pending_reveals)],
      ['API calls about it', count(totals.api_requests)],
    ])}
    ${barChart({
      title: 'Sessions and reveals a day',
      axis: 'Day',
      isStacked: false,
      series: [{ name: 'Sessions' }, { name: 'Reveals' }],
      points: days.map((day) => ({
        label: dayLabel(day),
        values: [sum(day, 'sessions'), sum(day, 'reveals')],
      })),
    })}</section>`;
}
