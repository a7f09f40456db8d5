import type { TrackerBody } from '../../../read-api/trackers/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { mayChange, type Visit } from '../api.ts';
import { type Content, copyable, form, html } from '../components.ts';
import type { PageRoute } from '../routes.ts';

/** What a new account has done so far. */
export interface StartState {
  readonly hasLookedUp: boolean;
  readonly hasVisit: boolean;
  readonly hasDelivery: boolean;
  /** An endpoint that waits for its first delivery; null: there is none. */
  readonly webhookId: string | null;
}

export interface StartDeps {
  readonly startState: (partnerId: string) => Promise<StartState>;
}

const COOKIE = '__Host-doorplate-start';
const YEAR_SECONDS = 365 * 24 * 3_600;

/** The first steps can be hidden on a device: an account may never need all of them. */
export const hideStart: PageRoute = {
  method: 'POST',
  path: '/dashboard/start/hide',
  needs: 'read-only',
  handle: () =>
    redirectAfterPost('/dashboard', undefined, {
      'set-cookie': `${COOKIE}=hidden; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${YEAR_SECONDS}`,
    }),
};

/** Whether the first steps are for this user and not hidden on this device. */
export const showsStart = (visit: Visit): boolean =>
  mayChange(visit) && !visit.request.header('cookie')?.includes(`${COOKIE}=hidden`);

/** The first steps of an account; null when all are done. */
export function startPanel(
  visit: Visit,
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
  ${form(visit, '/dashboard/start/hide', html`<button class="quiet">Hide these steps</button>`)}</section>`;
}

const step = (title: string, isDone: boolean, content: Content) =>
  html`<li><strong>${title}</strong>${isDone ? html` <span class="badge good">Done</span>` : content}</li>`;
