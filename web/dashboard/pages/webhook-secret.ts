import { isoTime } from '../../../domain/kernel/time.ts';
import type { Reply } from '../../../http/contract/route.ts';
import { failureText } from '../../../projections/webhooks/deliveries/health-readers.ts';
import { type Delivery, searchDeliveries } from '../../../projections/webhooks/deliveries/readers.ts';
import type { WebhookBody } from '../../../read-api/webhooks/endpoint-schemas.ts';
import { mayChange, type PageContext, type Refused } from '../api.ts';
import { badge, type Content, checkbox, copyable, form, html, panel, secretOnce } from '../components.ts';
import { ask, show } from '../layout.ts';
import { filled, get, type PageRoute, post } from '../routes.ts';
import { verificationSnippets } from './webhook-snippets.ts';

export type WithSecret = WebhookBody & { readonly signing_secret: string };

const PATH = '/dashboard/webhooks';
const WEBHOOK = '/v1/webhooks/:webhook_id';

/** How long both secrets sign. */
const OVERLAP_MS = 86_400_000;

const pathOf = ({ request }: PageContext): string => filled(`${PATH}/:webhook_id`, request.params);

type ShowEndpoint = (page: PageContext, refused: Refused) => Promise<Reply>;

/** The rotation of a signing secret: a question, the new secret once, and the steps until the old one ends. */
export const rotationPages = (showEndpoint: ShowEndpoint): PageRoute[] => [
  get(`${PATH}/:webhook_id/rotate`, (page) => rotation(page, showEndpoint), { needs: 'member' }),
  post(`${PATH}/:webhook_id/rotate`, 'member', (page) => rotate(page, showEndpoint)),
];

/** Shows the secret of a new endpoint, once. */
export const secretPage = (page: PageContext, { id, name, signing_secret }: WithSecret): Reply =>
  show(page, {
    title: 'Your new endpoint',
    section: 'Webhooks',
    content: html`${secretOnce(`Signing secret of “${name}”`, signing_secret)}
      ${panel(
        'Verify what arrives',
        html`<p>Your server checks with it that a delivery comes from here.</p>${verificationSnippets()}`,
      )}
      <p><a class="button" href="${PATH}/${id}">I have kept it</a></p>`,
  });

async function rotation(page: PageContext, showEndpoint: ShowEndpoint): Promise<Reply> {
  const found = await page.api<WebhookBody>('GET', WEBHOOK);
  if (!found.ok) return showEndpoint(page, found);
  const { name, secret_rotation_until } = found.body;
  if (secret_rotation_until !== null) return steps(page, found.body, null);
  return ask(page, {
    title: `Rotate the secret of “${name}”?`,
    section: 'Webhooks',
    text: html`<p>A new secret is shown once and signs from now on. For 24 hours the present one signs as well, so no delivery
        is lost while you put the new one on your servers. The steps follow on the next page.</p>
      <p>For these 24 hours the secret cannot be rotated again: keep the new one when it is shown. If you lose it, you have to wait 24
        hours for another.</p>`,
    action: `${pathOf(page)}/rotate`,
    button: 'Rotate the secret',
    back: pathOf(page),
    isFinal: false,
  });
}

async function rotate(page: PageContext, showEndpoint: ShowEndpoint): Promise<Reply> {
  const rotated = await page.api<WithSecret>('POST', `${WEBHOOK}/rotate-secret`);
  return rotated.ok ? steps(page, rotated.body, rotated.body.signing_secret) : showEndpoint(page, rotated);
}

/** `secret`: shown now; null: it was shown when the rotation began. */
async function steps(page: PageContext, webhook: WebhookBody, secret: string | null): Promise<Reply> {
  const at = pathOf(page);
  const test = await findTest(page, webhook);
  const until = page.time(webhook.secret_rotation_until);
  return show(page, {
    title: `Rotation of “${webhook.name}”`,
    section: 'Webhooks',
    up: [at, webhook.name],
    content: html`${panel(
      '1. Keep the new secret',
      secret === null
        ? html`<p>It was shown once, when the rotation began. If you have not kept it, wait until ${until}: then you can rotate
            again.</p>`
        : html`<p><strong>This is shown once.</strong> Copy it now: nobody can show it again.</p>
            <div data-once>${copyable('The new secret', secret)}</div>`,
    )}
    ${panel(
      '2. Put it on your servers',
      html`<p>Each delivery carries two signatures, by the new and by the old secret, until ${until}. Verification accepts either, so
          change one server after another. Nothing has to happen at the same moment.</p>
        ${verificationSnippets()}`,
    )}
    ${panel(
      '3. Send a test',
      html`<p>${testState(page, test, at)}</p>
        ${
          mayChange(page) &&
          webhook.enabled &&
          form(
            page,
            `${at}/test`,
            html`<input type="hidden" name="from" value="rotation">
            ${secret !== null && checkbox('I have kept the new secret', 'kept', 'yes', false, true)}
            <button class="quiet">Send a test</button>`,
          )
        }`,
    )}
    ${panel('4. The old secret ends', html`<p>The old secret stops signing at ${until}. Nothing more is to be done.</p>`)}
    <p><a class="button" data-kept href="${at}">${secret === null ? 'Back to the endpoint' : 'Done: to the endpoint'}</a></p>`,
  });
}

const TESTS_READ = 20;

/** Finds the newest test of this page since the rotation began, or else of the API. */
async function findTest({ reads, request }: PageContext, webhook: WebhookBody) {
  const began = Date.parse(webhook.secret_rotation_until ?? '') - OVERLAP_MS;
  const tests = await searchDeliveries(reads.db, {
    webhookId: webhook.id,
    deleted: webhook.deleted_at !== null,
    status: null,
    type: 'webhook.test',
    from: isoTime(began),
    to: null,
    after: null,
    limit: TESTS_READ,
    now: request.receivedAt,
  });
  return tests.find(({ newest_secret_only }) => newest_secret_only) ?? tests[0];
}

function testState(page: PageContext, test: Delivery | undefined, at: string): Content {
  if (test === undefined)
    return 'The test is signed by the new secret alone, so it shows whether your servers have it. None was sent since the rotation began.';
  const link = html`<a href="${at}/deliveries/${test.delivery_id}">The test</a> of ${page.ago(test.created_at)}`;
  if (test.state === 'delivered') {
    return test.signed_by === 'newest'
      ? html`${badge('delivered', 'good')} ${link} was accepted with the new secret.`
      : html`${badge('delivered', 'wait')} ${link} was signed by both secrets and accepted, which does not show that your servers
          have the new one. Send another test.`;
  }
  const failure = failureText(test);
  if (failure === '')
    return html`<span class="reload">${badge(test.state, 'wait')} ${link} is under way.</span>`;
  const isByNewestAlone = test.newest_secret_only && test.signed_by === 'newest';
  return html`${badge('not accepted', 'bad')} ${link} was not accepted: ${failure}. ${
    isByNewestAlone
      ? `It is signed by the new secret alone. Put that on your servers, then send another test. Other deliveries carry both
        signatures, so none is lost meanwhile.`
      : 'It was not signed by the new secret alone, so the secret need not be the cause. Fix the receiver, then send another test.'
  }`;
}
