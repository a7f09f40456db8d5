import type { Reply } from '../../../http/contract/route.ts';
import type { TrackerBody, TrackerUsageBody } from '../../../read-api/trackers/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { type ErrorAnswer, listTrackers, mayChange, type Refused, textOf, type Visit } from '../api.ts';
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
import { ask, show } from '../layout.ts';
import { respelled } from '../origins.ts';
import type { PageRoute } from '../routes.ts';
import { linkTo } from '../scope.ts';
import { type InstallDeps, installCheck, installCheckPages } from './install-check.ts';

const PATH = '/dashboard/trackers';

/** The partner's trackers, pixels on customers' websites: all of them, and a new one. */
export const trackerListPages: readonly PageRoute[] = [
  { method: 'GET', path: PATH, handle: (visit) => list(visit) },
  { method: 'POST', path: PATH, needs: 'member', handle: (visit) => create(visit) },
];

async function list(visit: Visit, refused: Refused = null): Promise<Reply> {
  const { trackers, failed } = await listTrackers(visit);
  const shown = searched(visit, trackers, ({ name, origins, customer_reference }) =>
    [name, ...origins, customer_reference ?? ''].join(' '),
  );
  return show(visit, {
    title: 'Websites',
    section: 'Websites',
    refused: refused ?? failed,
    content: html`${trackers.length > FEW && searchForm(visit)}
    ${
      trackers.length > 0 && shown.length === 0
        ? noMatch(PATH)
        : tableOr(
            nothingYet(
              'No websites yet',
              html`${mayChange(visit) ? 'Add the first one below, then put its snippet on the pages.' : OTHERS_ADD}
                Doorplate calls the pixel of a website a tracker.`,
            ),
            `${counted(shown.length, 'website')}, each with its tracker`,
            ['Name', 'State', 'Origins', 'Your reference', 'Created'],
            shown.map((tracker) => [
              html`<a href="${linkTo(`${PATH}/${tracker.id}`, visit.scope.query)}">${tracker.name}</a>`,
              stateOf(tracker),
              fewOf(tracker.origins),
              tracker.customer_reference ?? '–',
              visit.time(tracker.created_at),
            ]),
          )
    }
    ${
      mayChange(visit) &&
      html`<section class="panel" id="create"><h2>Add a website</h2>${form(
        visit,
        PATH,
        html`${trackerFields(visit, { name: '', origins: [], customer_reference: null }, refused)}
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
  visit: Visit,
  stored: Pick<TrackerBody, 'name' | 'origins' | 'customer_reference'>,
  refused: Refused,
) {
  const isSent = visit.form.has('origins');
  const { name, reference, origins } = isSent
    ? sent(visit)
    : { ...stored, reference: stored.customer_reference ?? '' };
  const changes = refused?.code === 'invalid_origin' ? respelled(origins) : [];
  const meant = new Map(changes);
  const lines = new Set(origins.flatMap((line) => (meant.get(line)?.length ? meant.get(line) : [line])));
  return html`${field('Name', 'name', { value: name, required: true, maxlength: 200 })}
    <div class="field"><label for="origins">Websites</label>
      <textarea id="origins" name="origins" rows="3" required aria-describedby="origins-hint">${[...lines].join('\n')}</textarea>
      ${changes.length > 0 && respellings(changes)}
      <small id="origins-hint">One origin a line: <code>https://www.example.com</code>, or
      <code>https://*.example.com</code> for every subdomain.</small></div>
    ${field('Your reference', 'customer_reference', { value: reference, maxlength: 200, hint: 'Optional: what you call this customer.' })}`;
}

const respellings = (
  changes: ReturnType<typeof respelled>,
) => html`<div class="notice"><p>These lines are not origins. Check
    the corrected list above, then send the form again:</p>
  <ul>${changes.map(([line, meant]) => html`<li><code>${line}</code> ${meant.length === 0 ? 'is no website: write it as https://www.example.com' : html`means ${meant.map((origin, nth) => html`${nth > 0 && ' and '}<code>${origin}</code>`)}`}</li>`)}</ul></div>`;

const sent = (visit: Visit) => ({
  name: textOf(visit, 'name'),
  reference: textOf(visit, 'customer_reference'),
  origins: textOf(visit, 'origins').split(/\s+/).filter(Boolean),
});

const bodyIn = (visit: Visit) => {
  const { name, reference, origins } = sent(visit);
  return { name, origins, customer_reference: reference === '' ? null : reference };
};

const stateOf = ({ disabled_at }: TrackerBody) =>
  disabled_at === null ? badge('enabled', 'good') : badge('disabled', 'off');

async function create(visit: Visit): Promise<Reply> {
  const made = await visit.api<TrackerBody>('POST', '/v1/trackers', { body: bodyIn(visit) });
  return made.ok ? redirectAfterPost(`${PATH}/${made.body.id}`, 'tracker-created') : list(visit, made);
}

const TRACKER = '/v1/trackers/:tracker_id';

/** One tracker: its snippet, installation check, usage and deletion. */
export const trackerPages = (deps: InstallDeps): readonly PageRoute[] => [
  { method: 'GET', path: `${PATH}/:tracker_id`, handle: (visit) => one(deps, visit) },
  ...installCheckPages,
  {
    method: 'POST',
    path: `${PATH}/:tracker_id/change`,
    needs: 'member',
    handle: (visit) => update(deps, visit),
  },
  {
    method: 'POST',
    path: `${PATH}/:tracker_id/disable`,
    needs: 'member',
    handle: (visit) => change(deps, visit, 'DELETE', TRACKER, 'tracker-disabled'),
  },
  {
    method: 'POST',
    path: `${PATH}/:tracker_id/enable`,
    needs: 'member',
    handle: (visit) => change(deps, visit, 'POST', `${TRACKER}/enable`, 'tracker-enabled'),
  },
  { method: 'GET', path: `${PATH}/:tracker_id/delete`, needs: 'member', handle: (visit) => askDelete(visit) },
  {
    method: 'POST',
    path: `${PATH}/:tracker_id/delete`,
    needs: 'member',
    handle: (visit) => change(deps, visit, 'POST', `${TRACKER}/delete`, 'tracker-deleted'),
  },
];

const paramsOf = ({ request }: Visit) => ({ tracker_id: request.params.tracker_id ?? '' });

const MISSING: ErrorAnswer = {
  ok: false,
  status: 404,
  code: 'tracker_not_found',
  message: 'There is no such tracker, or it is deleted.',
};

/** The tracker, or the reason why it cannot be shown. */
async function find(visit: Visit): Promise<TrackerBody | ErrorAnswer> {
  const { trackers, failed } = await listTrackers(visit);
  const { tracker_id } = paramsOf(visit);
  return failed ?? trackers.find(({ id }) => id === tracker_id) ?? MISSING;
}

/** The API tells at most so many days of usage. */
const MAX_DAYS = 31;

async function one(deps: InstallDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const days = visit.scope.period.days.slice(-MAX_DAYS);
  const [tracker, usage] = await Promise.all([
    find(visit),
    visit.api<TrackerUsageBody>('GET', `${TRACKER}/usage`, {
      params: paramsOf(visit),
      query: { from: days[0], to: visit.scope.period.to.slice(0, 10) },
    }),
  ]);
  if ('ok' in tracker) return list(visit, refused ?? tracker);
  const evidence = await deps.evidence(tracker.id);
  const at = `${PATH}/${tracker.id}`;
  return show(visit, {
    title: tracker.name,
    section: 'Websites',
    refused: refused ?? (usage.ok ? null : usage),
    content: html`${facts([
      ['State', stateOf(tracker)],
      ['Websites', tracker.origins.join(', ')],
      ['Your reference', tracker.customer_reference ?? '–'],
      ['Created', visit.time(tracker.created_at)],
      ['Id', html`<code>${tracker.id}</code>`],
    ])}
    <p><a class="button" href="/dashboard/sessions?tracker_id=${tracker.id}">Its sessions</a>
      <a class="button quiet" href="/dashboard/domains?tracker_id=${tracker.id}">Its domains</a></p>
    <section><h2>Install</h2>
      <p>Put this into every page, before <code>&lt;/body&gt;</code> for example:</p>
      ${copyable('Snippet', tracker.snippet)}</section>
    ${installCheck(visit, tracker, evidence)}
    ${usage.ok && usageOf(visit, usage.body, days)}
    ${
      mayChange(visit) &&
      html`<section><h2>Change</h2>${form(
        visit,
        `${at}/change`,
        html`${trackerFields(visit, tracker, refused)}
      <p>Visits are accepted from these websites within a second. The snippet stays.</p>
      <button>Save</button>`,
      )}</section>
    <section><h2>${tracker.disabled_at === null ? 'Disable' : 'Enable or delete'}</h2>${
      tracker.disabled_at === null
        ? form(
            visit,
            `${at}/disable`,
            html`<p>A disabled tracker takes no visits. Its sessions stay.</p>
          <button class="quiet">Disable the tracker</button>`,
          )
        : html`${form(visit, `${at}/enable`, html`<button>Enable the tracker</button>`)}
          <p><a class="button danger" href="${at}/delete">Delete the tracker…</a></p>`
    }</section>`
    }
    <p><a href="${PATH}">All trackers</a></p>`,
  });
}

function usageOf(
  visit: Visit,
  { hourly, totals, pending_reveals }: TrackerUsageBody,
  days: readonly string[],
) {
  const of = (day: string) => hourly.filter(({ hour }) => hour.startsWith(day));
  const sum = (day: string, name: 'sessions' | 'reveals') =>
    of(day).reduce((total, row) => total + row[name], 0);
  return html`<section><h2>Usage</h2>
    <form class="filter" method="get">${periodFields(visit)}<button class="quiet">Apply</button></form>
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

async function update(deps: InstallDeps, visit: Visit): Promise<Reply> {
  const params = paramsOf(visit);
  const changed = await visit.api('PATCH', TRACKER, { params, body: bodyIn(visit) });
  if (!changed.ok) return one(deps, visit, changed);
  return redirectAfterPost(`${PATH}/${params.tracker_id}`, 'tracker-changed');
}

async function change(
  deps: InstallDeps,
  visit: Visit,
  method: 'POST' | 'DELETE',
  path: string,
  done: string,
): Promise<Reply> {
  const params = paramsOf(visit);
  const changed = await visit.api(method, path, { params });
  if (!changed.ok) return one(deps, visit, changed);
  return redirectAfterPost(done === 'tracker-deleted' ? PATH : `${PATH}/${params.tracker_id}`, done);
}

async function askDelete(visit: Visit): Promise<Reply> {
  const tracker = await find(visit);
  if ('ok' in tracker) return list(visit, tracker);
  return ask(visit, {
    title: `Delete “${tracker.name}”?`,
    section: 'Websites',
    text: html`<p>Its pixel collects nothing more, and it cannot be brought back. Sessions, receipts and usage stay
        readable until they expire.</p>`,
    action: `${PATH}/${tracker.id}/delete`,
    button: 'Delete the tracker',
    back: `${PATH}/${tracker.id}`,
  });
}
