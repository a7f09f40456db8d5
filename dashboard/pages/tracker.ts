import type { Reply } from '../../http/contract/route.ts';
import type { TrackerBody, TrackerUsageBody } from '../../read-api/trackers/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import type { ErrorAnswer } from '../api.ts';
import { barChart } from '../charts.ts';
import { confirmation, copyable, count, counted, facts, form, time } from '../components.ts';
import { daysBack } from '../days.ts';
import { html } from '../html.ts';
import { show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';
import type { Refused, Visit } from '../visit.ts';
import { list, PATH, stateOf, type TrackerList } from './trackers.ts';

const TRACKER = '/v1/trackers/:tracker_id';

/** One tracker: its snippet, installation check, usage and deletion. */
export const trackerPages: readonly PageRoute[] = [
  { method: 'GET', path: `${PATH}/:tracker_id`, handle: (visit) => one(visit) },
  {
    method: 'POST',
    path: `${PATH}/:tracker_id/disable`,
    handle: (visit) => change(visit, 'DELETE', TRACKER, 'tracker-disabled'),
  },
  {
    method: 'POST',
    path: `${PATH}/:tracker_id/enable`,
    handle: (visit) => change(visit, 'POST', `${TRACKER}/enable`, 'tracker-enabled'),
  },
  { method: 'GET', path: `${PATH}/:tracker_id/delete`, handle: (visit) => askDelete(visit) },
  {
    method: 'POST',
    path: `${PATH}/:tracker_id/delete`,
    handle: (visit) => change(visit, 'POST', `${TRACKER}/delete`, 'tracker-deleted'),
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
const find = async (visit: Visit): Promise<TrackerBody | ErrorAnswer> => {
  const listed = await visit.api<TrackerList>('GET', '/v1/trackers');
  if (!listed.ok) return listed;
  const { tracker_id } = paramsOf(visit);
  return listed.body.trackers.find(({ id }) => id === tracker_id) ?? MISSING;
};

const DAYS = 30;

const one = async (visit: Visit, refused: Refused = null): Promise<Reply> => {
  const days = daysBack(visit.request.receivedAt, DAYS);
  const [tracker, usage] = await Promise.all([
    find(visit),
    visit.api<TrackerUsageBody>('GET', `${TRACKER}/usage`, {
      params: paramsOf(visit),
      query: { from: days[0] },
    }),
  ]);
  if ('ok' in tracker) return list(visit, refused ?? tracker);
  const at = `${PATH}/${tracker.id}`;
  return show(visit, {
    title: tracker.name,
    section: 'Trackers',
    refused: refused ?? (usage.ok ? null : usage),
    content: html`${facts([
      ['State', stateOf(tracker)],
      ['Websites', tracker.origins.join(', ')],
      ['Your reference', tracker.customer_reference ?? '–'],
      ['Created', time(tracker.created_at)],
      ['Id', html`<code>${tracker.id}</code>`],
    ])}
    <p><a class="button" href="/dashboard/sessions?tracker_id=${tracker.id}">Its sessions</a>
      <a class="button quiet" href="/dashboard/domains?tracker_id=${tracker.id}">Its domains</a></p>
    <section><h2>Install</h2>
      <p>Put this into every page, before <code>&lt;/body&gt;</code> for example:</p>
      ${copyable('Snippet', tracker.snippet)}
      ${usage.ok && installCheck(tracker, usage.body)}</section>
    ${usage.ok && usageOf(usage.body, days)}
    <section><h2>${tracker.disabled_at === null ? 'Disable' : 'Enable or delete'}</h2>${
      tracker.disabled_at === null
        ? form(
            visit,
            `${at}/disable`,
            html`<p>A disabled tracker takes no visits. Its sessions stay.</p>
          <button class="danger">Disable the tracker</button>`,
          )
        : html`${form(visit, `${at}/enable`, html`<button>Enable the tracker</button>`)}
          <p><a class="button danger" href="${at}/delete">Delete the tracker…</a></p>`
    }</section>
    <p><a href="${PATH}">All trackers</a></p>`,
  });
};

/** Judged by received visits: the customer's page is not requested. */
const installCheck = ({ disabled_at, origins }: TrackerBody, { hourly, totals }: TrackerUsageBody) => {
  const last = hourly.findLast(({ capture_requests }) => capture_requests > 0);
  if (last !== undefined) {
    return html`<p class="said">Installed: ${counted(totals.capture_requests, 'visit')} reported in ${DAYS} days, the last in
      the hour of ${time(last.hour)}.</p>`;
  }
  return html`<div class="notice"><p><strong>No visit has arrived yet.</strong> Open a page that has the snippet, then
    <a href="">check again</a>. If still nothing comes:</p><ul>
    ${disabled_at !== null && html`<li>The tracker is disabled.</li>`}
    <li>The page must be on ${origins.join(' or ')}, spelled so, with its port if it has one.</li>
    <li>A content security policy of the page must allow the script and its calls.</li>
    <li>Crawlers, and browsers that ask not to be tracked, report nothing.</li></ul></div>`;
};

const usageOf = ({ hourly, totals, pending_reveals }: TrackerUsageBody, days: readonly string[]) => {
  const of = (day: string) => hourly.filter(({ hour }) => hour.startsWith(day));
  const sum = (day: string, name: 'sessions' | 'reveals') =>
    of(day).reduce((total, row) => total + row[name], 0);
  return html`<section><h2>Last ${DAYS} days</h2>
    ${facts([
      ['Visits reported', count(totals.capture_requests)],
      ['Sessions', count(totals.sessions)],
      ['Reveals', count(totals.reveals)],
      ['Units', count(totals.billable_reveals)],
      ['Reveals pending', count(pending_reveals)],
      ['API requests', count(totals.api_requests)],
    ])}
    ${barChart({
      title: 'Sessions and reveals a day',
      series: ['Sessions', 'Reveals'],
      days: days.map((day) => ({ day, values: [sum(day, 'sessions'), sum(day, 'reveals')] })),
    })}</section>`;
};

const change = async (
  visit: Visit,
  method: 'POST' | 'DELETE',
  path: string,
  done: string,
): Promise<Reply> => {
  const params = paramsOf(visit);
  const changed = await visit.api(method, path, { params });
  if (!changed.ok) return one(visit, changed);
  return redirectAfterPost(done === 'tracker-deleted' ? PATH : `${PATH}/${params.tracker_id}`, done);
};

const askDelete = async (visit: Visit): Promise<Reply> => {
  const tracker = await find(visit);
  if ('ok' in tracker) return list(visit, tracker);
  return show(visit, {
    title: `Delete “${tracker.name}”?`,
    section: 'Trackers',
    content: confirmation(visit, {
      text: html`<p>Its pixel collects nothing more, and it cannot be brought back. Sessions, receipts and usage stay
        readable until they expire.</p>`,
      action: `${PATH}/${tracker.id}/delete`,
      button: 'Delete the tracker',
      back: `${PATH}/${tracker.id}`,
    }),
  });
};
