import type { TrackerBody } from '../../../read-api/trackers/schemas.ts';
import type { StartState } from '../../../read-api/usage/partner-usage.ts';
import { redirectAfterPost } from '../answers.ts';
import { mayChange, type PageContext } from '../api.ts';
import { type Content, copyable, form, html } from '../components.ts';
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

/** The first steps of an account; null when all are done. */
export function startPanel(
  page: PageContext,
  { hasLookedUp, hasVisit, hasDelivery, webhookId }: StartState,
  trackers: readonly TrackerBody[],
): Content {
  if (hasLookedUp && hasVisit && hasDelivery) return null;
  const [tracker] = trackers;
  return html`<section class="panel" id="start" data-live><h2>Get started</h2>
  <ol class="steps">
    ${step(
      'Look up an address',
      hasLookedUp,
      html`<p>Ask which company is behind an IP address. <a class="button" href="/dashboard/lookup?ip=8.8.8.8">Look up 8.8.8.8</a></p>`,
    )}
    ${step(
      'See who visits your website',
      hasVisit,
      tracker === undefined
        ? html`<p>Add a website and put its snippet on the pages. <a class="button" href="/dashboard/trackers#create">Add a website</a></p>`
        : html`<p>Put this into every page of “${tracker.name}”, then open one of them:</p>${copyable('Snippet', tracker.snippet)}
          <p>Waiting for the first visit … <a href="/dashboard/trackers/${tracker.id}">Why do I see nothing?</a></p>`,
    )}
    ${step(
      'Get webhooks',
      hasDelivery,
      webhookId === null
        ? html`<p>Have sessions and reveals sent to your server. <a class="button" href="/dashboard/webhooks#create">Add an endpoint</a></p>`
        : html`<p>Send a test event to your endpoint. <a class="button" href="/dashboard/webhooks/${webhookId}">Open the endpoint</a></p>`,
    )}
  </ol>
  ${form(page, '/dashboard/start/hide', html`<button class="quiet">Hide these steps</button>`)}</section>`;
}

const step = (title: string, isDone: boolean, content: Content) =>
  html`<li><strong>${title}</strong>${isDone ? html` <span class="badge good">Done</span>` : content}</li>`;
