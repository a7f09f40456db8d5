import { randomUUID } from 'node:crypto';
import type { Reply } from '../../../http/contract/route.ts';
import type { RevealBody } from '../../../read-api/reveals/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { type Refused, textOf, type Visit } from '../api.ts';
import { badge, type Content, facts, html } from '../components.ts';
import { ask, show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';
import type { RevealOfSession } from './sessions.ts';

export interface RevealDeps {
  readonly revealsOf: (
    partnerId: string,
    sessionIds: readonly string[],
  ) => Promise<readonly RevealOfSession[]>;
}

/** Reveals of a company, and their results. */
export const revealPages = (deps: RevealDeps): PageRoute[] => [
  {
    method: 'GET',
    path: '/dashboard/sessions/:session_id/reveal',
    needs: 'member',
    handle: (visit) => askReveal(deps, visit),
  },
  {
    method: 'POST',
    path: '/dashboard/sessions/:session_id/reveal',
    needs: 'member',
    handle: (visit) => reveal(deps, visit),
  },
  { method: 'GET', path: '/dashboard/reveals/:reveal_id', handle: (visit) => receipt(visit) },
];

async function askReveal({ revealsOf }: RevealDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const session_id = visit.request.params.session_id ?? '';
  const known = await visit.api('GET', '/v1/sessions/:session_id', { params: { session_id } });
  if (!known.ok) return missing(visit, 'No such session', refused ?? known);
  const earlier = await revealsOf(visit.user.partner_id, [session_id]);
  return question(
    visit,
    randomUUID(),
    earlier.length > 0 &&
      html`<p><strong>This session has been revealed before.</strong> Its receipts stay free to
        read; a new reveal may cost another unit.</p>`,
    refused,
  );
}

const missing = (visit: Visit, title: string, refused: Refused): Reply =>
  show(visit, {
    title,
    section: 'Sessions',
    refused,
    content: html`<p><a href="/dashboard/sessions">All sessions</a></p>`,
  });

/** The page contains the idempotency key: a form that is sent twice, or again after a failure, is one reveal. */
function question(visit: Visit, idempotencyKey: string, warning: Content, refused: Refused): Reply {
  const at = `/dashboard/sessions/${encodeURIComponent(visit.request.params.session_id ?? '')}`;
  return ask(visit, {
    title: 'Reveal the company?',
    section: 'Sessions',
    refused,
    text: html`<p>This costs <strong>one unit</strong> if anything is found about the visitor's company or network, and
        nothing if not.</p>${warning}`,
    action: `${at}/reveal`,
    button: 'Reveal, for one unit',
    back: at,
    fields: { idempotency_key: idempotencyKey },
  });
}

async function reveal(deps: RevealDeps, visit: Visit): Promise<Reply> {
  const session_id = visit.request.params.session_id ?? '';
  const idempotencyKey = textOf(visit, 'idempotency_key');
  const revealed = await visit.api<RevealBody>('POST', '/v1/sessions/:session_id/reveal', {
    params: { session_id },
    idempotencyKey,
  });
  if (revealed.ok) return redirectAfterPost(`/dashboard/reveals/${revealed.body.reveal_id}`);
  if (revealed.status !== 429 && revealed.status !== 503) return askReveal(deps, visit, revealed);
  // The reveal may have been recorded. This page reads nothing, because the read may fail as well.
  const again = html`<p><strong>Send it again from this page:</strong> however often, it is one reveal and at most one
    unit.</p>`;
  return question(visit, idempotencyKey, again, revealed);
}

async function receipt(visit: Visit): Promise<Reply> {
  const reveal_id = visit.request.params.reveal_id ?? '';
  const found = await visit.api<RevealBody>('GET', '/v1/reveals/:reveal_id', { params: { reveal_id } });
  if (!found.ok) return missing(visit, 'No receipt', found);
  const { body } = found;
  return show(visit, {
    title: 'Receipt',
    section: 'Sessions',
    showsCountry: true,
    content: html`${facts([
      ['State', body.status === 'complete' ? badge('complete', 'good') : badge('pending', 'wait')],
      ['Units', String(body.billable_units)],
      ['Asked', visit.time(body.created_at)],
      ['Completed', visit.time(body.completed_at, 'not yet')],
      ['Kept until', visit.time(body.expires_at)],
      ['Id', html`<code>${body.reveal_id}</code>`],
    ])}
    ${
      body.result === null
        ? html`<p class="notice">The enrichment is under way. <a class="reload" href="">Look again</a></p>`
        : html`${known('Company', body.result.company)}${known('Network', body.result.network)}`
    }
    <p><a href="/dashboard/sessions/${body.session_id}">Its session</a></p>`,
  });
}

/** The known fields; null for an object without any. */
function known(title: string, fields: Readonly<Record<string, unknown>> | null) {
  const pairs = Object.entries(fields ?? {}).filter(([, value]) => value !== null);
  return html`<section><h2>${title}</h2>${
    pairs.length === 0
      ? html`<p>Nothing was found.</p>`
      : facts(pairs.map(([name, value]) => [wordsOf(name), textOfValue(name, String(value))]))
  }</section>`;
}

function wordsOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const textOfValue = (name: string, value: string) =>
  /^(website|linkedin_url)$/.test(name) && /^https?:\/\/\S+$/.test(value)
    ? html`<a href="${value}" rel="noreferrer nofollow">${value}</a>`
    : value;
