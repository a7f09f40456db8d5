import type { TrackerBody } from '../../../read-api/trackers/schemas.ts';
import type { StartState } from '../../../read-api/usage/partner-usage.ts';
import { redirectAfterPost } from '../answers.ts';
import { mayChange, type PageContext } from '../api.ts';
import { badge, type Content, copyable, field, form, html } from '../components.ts';
import { type PageRoute, post } from '../routes.ts';

const COOKIE = '__Host-doorplate-start';
const YEAR_SECONDS = 365 * 24 * 3_600;

/** The first steps can be hidden on a device: an account may never need all of them. */
export const hideStart: PageRoute = post('/dashboard/start/hide', 'read-only', () =>
  redirectAfterPost('/dashboard', undefined, {
    'set-cookie': `${COOKIE}=hidden; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${YEAR_SECONDS}`,
  }),
);

/** Whether the first steps are for this user and not hidden on this device. */
export const showsStart = (page: PageContext): boolean =>
  mayChange(page) && !page.request.header('cookie')?.includes(`${COOKIE}=hidden`);

/** The first steps of an account, of which the first that is not done says what to do; null when all are done. */
export function startPanel(
  page: PageContext,
  { hasLookedUp, hasVisit, hasDelivery, webhookId }: StartState,
  trackers: readonly TrackerBody[],
): Content {
  const [tracker] = trackers;
  const steps = [
    {
      title: 'See who visits your website',
      isDone: hasVisit,
      toDo: tracker === undefined ? addWebsite(page) : putSnippet(tracker),
      done: html`<a href="/dashboard/sessions">See its visits</a>, and reveal the companies behind them`,
    },
    {
      title: 'Look up an address',
      isDone: hasLookedUp,
      toDo: html`<p>Ask which company is behind an IP address. <a class="button" href="/dashboard/lookup?ip=8.8.8.8">Look up 8.8.8.8</a></p>`,
    },
    {
      title: 'Get webhooks',
      isDone: hasDelivery,
      toDo:
        webhookId === null
          ? html`<p>Have sessions and reveals sent to your server. <a class="button" href="/dashboard/webhooks/new">Add an endpoint</a></p>`
          : html`<p>Send a test event to your endpoint. <a class="button" href="/dashboard/webhooks/${webhookId}/testing">Open the endpoint</a></p>`,
    },
  ];
  const next = steps.findIndex(({ isDone }) => !isDone);
  if (next === -1) return null;
  // A form would lose what is being typed.
  const isWaiting = next === 0 && tracker !== undefined;
  return html`<section class="panel" id="start"${isWaiting && html` data-live`}><h2>Get started</h2>
  <ol class="steps">${steps.map(
    ({ title, isDone, toDo, done }, nth) =>
      html`<li${nth === next && html` aria-current="step"`}><strong>${title}</strong>${isDone ? html` ${badge('Done', 'good')} ${done}` : nth === next && toDo}</li>`,
  )}</ol>
  ${form(page, '/dashboard/start/hide', html`<button class="quiet">Hide these steps</button>`)}</section>`;
}

const addWebsite = (page: PageContext): Content =>
  form(
    page,
    '/dashboard/trackers',
    html`<input type="hidden" name="from" value="start">
    ${field('Your website', 'origins', { required: true, placeholder: 'www.example.com', maxlength: 255 })}
    <button>Add the website</button>`,
  );

const putSnippet = ({ id, name, snippet }: TrackerBody): Content =>
  html`<p>Put this into every page of “${name}”, before <code>&lt;/body&gt;</code> for example, then open one of them:</p>
    ${copyable('Snippet', snippet)}
    <p role="status">Waiting for the first visit … It shows here within seconds. <a href="/dashboard/trackers/${id}">Why do I see nothing?</a></p>`;
