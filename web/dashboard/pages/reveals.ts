import { randomUUID } from 'node:crypto';
import type { Reply } from '../../../http/contract/route.ts';
import type { RevealBody } from '../../../read-api/reveals/schemas.ts';
import type { SessionBody } from '../../../read-api/sessions/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { type ErrorAnswer, listTrackers, type PageContext, type Refused, textOf } from '../api.ts';
import * as ui from '../components.ts';
import { type Content, html } from '../components.ts';
import { countryName } from '../countries.ts';
import { ask, show } from '../layout.ts';
import { unitsText } from '../price.ts';
import { filled, get, type PageRoute, post } from '../routes.ts';
import { sum } from './overview.ts';
import { readRevealsOf } from './sessions.ts';

/** Reveals of a company, and their results. */
export const revealPages: readonly PageRoute[] = [
  get('/dashboard/sessions/reveal', askRevealSeveral, { needs: 'member' }),
  post('/dashboard/sessions/reveal', 'member', revealSeveral),
  get('/dashboard/sessions/:session_id/reveal', (page) => askReveal(page), { needs: 'member' }),
  post('/dashboard/sessions/:session_id/reveal', 'member', reveal),
  get('/dashboard/reveals/:reveal_id', receipt),
];

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Sessions revealed at once: a page of the list. */
const MAX_SESSIONS = 50;

/** The list, with its filters, that the sessions were selected in. */
function backIn(given: URLSearchParams): string {
  const back = given.get('back') ?? '';
  return /^\/dashboard\/sessions(\?[\w.~%&=+*-]*)?$/.test(back) ? back : '/dashboard/sessions';
}

/** Says what the selected sessions will cost. Those that were revealed before are left out: their result is known. */
async function askRevealSeveral(page: PageContext): Promise<Reply> {
  const selected = [...new Set(page.query.getAll('session_id'))]
    .filter((id) => UUID.test(id))
    .slice(0, MAX_SESSIONS);
  const [reveals, { trackers }, ...previews] = await Promise.all([
    readRevealsOf(page, selected),
    listTrackers(page),
    ...selected.map((session_id) =>
      page.api<SessionBody>('GET', '/v1/sessions/:session_id', { params: { session_id } }),
    ),
  ]);
  const revealed = new Set(reveals.map(({ session_id }) => session_id));
  const sessions = previews.flatMap((preview) => (preview.ok ? [preview.body] : []));
  const fresh = sessions.filter(({ session_id }) => !revealed.has(session_id));
  const head = { title: 'Reveal the selected sessions', section: 'Sessions' } as const;
  const back = backIn(page.query);
  if (fresh.length === 0) {
    return show(page, {
      ...head,
      content: ui.nothingYet(
        selected.length === 0 ? 'No session is selected' : 'Nothing to reveal',
        html`${
          selected.length === 0
            ? 'Tick the sessions in the list that you want to reveal.'
            : 'The selected sessions are revealed already, or have expired.'
        } <a href="${back}">Back to the sessions</a>`,
      ),
    });
  }
  const nameOf = ui.namesOfTrackers(trackers);
  return show(page, {
    ...head,
    showsCountry: true,
    content: html`<section class="confirm"><p>This costs <strong>at most ${unitsText(page.reads.price, fresh.length)}</strong>: one for each
        session whose company or network is found, and nothing for the others.</p>
      ${revealed.size > 0 && html`<p>${ui.counted(revealed.size, 'selected session is', 'selected sessions are')} revealed already and left out.</p>`}
      ${ui.form(
        page,
        '/dashboard/sessions/reveal',
        html`<input type="hidden" name="back" value="${back}">
        ${fresh.map(({ session_id }) => html`<input type="hidden" name="session" value="${session_id} ${randomUUID()}">`)}
        <button>Reveal ${ui.counted(fresh.length, 'session')}, for at most ${ui.counted(fresh.length, 'unit')}</button>
        <a class="button quiet" href="${back}">Cancel</a>`,
      )}</section>
    ${ui.table(
      'Sessions that will be revealed',
      ['Session', 'Website', 'Country'],
      fresh.map((session) => [
        html`<a href="/dashboard/sessions/${session.session_id}">${page.time(session.first_seen_at)}</a>`,
        nameOf(session.tracker_id),
        countryName(session.visitor_country),
      ]),
    )}`,
  });
}

/**
 * Reveals the sessions one after another. The form holds an idempotency key for each: sent again after a failure it is the same
 * reveals.
 */
async function revealSeveral(page: PageContext): Promise<Reply> {
  const back = backIn(page.form);
  const asked = page.form
    .getAll('session')
    .map((pair) => pair.split(' '))
    .slice(0, MAX_SESSIONS);
  // A session that has a reveal by now is done: by this form's earlier try, or by somebody else since the question was shown.
  const known = await readRevealsOf(
    page,
    asked.flatMap(([id = '']) => (UUID.test(id) ? [id] : [])),
  );
  const revealed = new Set(known.map(({ session_id }) => session_id));
  const pairs = asked.filter(([id = '']) => !revealed.has(id));
  const done: RevealBody[] = [];
  const left: { readonly pair: readonly string[]; readonly why: ErrorAnswer }[] = [];
  for (const [session_id = '', idempotencyKey = ''] of pairs) {
    const revealed = await page.api<RevealBody>('POST', '/v1/sessions/:session_id/reveal', {
      params: { session_id },
      idempotencyKey,
    });
    if (revealed.ok) done.push(revealed.body);
    else left.push({ pair: [session_id, idempotencyKey], why: revealed });
  }
  if (left.length === 0) {
    const units = sum(done, ({ billable_units }) => billable_units);
    const pending = done.filter(({ status }) => status !== 'complete').length;
    return redirectAfterPost(back, `revealed-${done.length}-${units}-${pending}`);
  }
  const [first] = left;
  return show(page, {
    title: 'Reveal the selected sessions',
    section: 'Sessions',
    status: first?.why.status ?? 503,
    content: html`${first && ui.alert(first.why)}
      <p>${ui.counted(done.length, 'session is', 'sessions are')} revealed, ${ui.counted(left.length, 'session is', 'sessions are')} not
        yet. Send the rest again from this page: each is revealed once, however often it is sent.</p>
      ${ui.form(
        page,
        '/dashboard/sessions/reveal',
        html`<input type="hidden" name="back" value="${back}">
        ${left.map(({ pair }) => html`<input type="hidden" name="session" value="${pair.join(' ')}">`)}
        <button>Reveal the other ${ui.counted(left.length, 'session')}, for at most ${ui.counted(left.length, 'unit')}</button>
        <a class="button quiet" href="${back}">Cancel</a>`,
      )}`,
  });
}

async function askReveal(page: PageContext, refused: Refused = null): Promise<Reply> {
  const session_id = page.request.params.session_id ?? '';
  const known = await page.api('GET', '/v1/sessions/:session_id');
  if (!known.ok) return missing(page, 'No such session', refused ?? known);
  const earlier = await readRevealsOf(page, [session_id]);
  return question(
    page,
    randomUUID(),
    earlier.length > 0 &&
      html`<p><strong>This session has been revealed before.</strong> Its receipts stay free to
        read; a new reveal may cost another unit.</p>`,
    refused,
  );
}

const missing = (page: PageContext, title: string, refused: Refused): Reply =>
  show(page, {
    title,
    section: 'Sessions',
    refused,
    up: ['/dashboard/sessions', 'Sessions'],
    content: '',
  });

/** The page contains the idempotency key: a form that is sent twice, or again after a failure, is one reveal. */
function question(page: PageContext, idempotencyKey: string, warning: Content, refused: Refused): Reply {
  const at = filled('/dashboard/sessions/:session_id', page.request.params);
  return ask(page, {
    title: 'Reveal the company?',
    section: 'Sessions',
    refused,
    text: html`<p>This costs <strong>${unitsText(page.reads.price, 1)}</strong> if anything is found about the visitor's company or network, and
        nothing if not.</p>${warning}`,
    action: `${at}/reveal`,
    button: 'Reveal, for one unit',
    back: at,
    fields: { idempotency_key: idempotencyKey },
    isFinal: false,
  });
}

async function reveal(page: PageContext): Promise<Reply> {
  const idempotencyKey = textOf(page, 'idempotency_key');
  const revealed = await page.api<RevealBody>('POST', '/v1/sessions/:session_id/reveal', { idempotencyKey });
  if (revealed.ok) {
    const { reveal_id, billable_units, status } = revealed.body;
    const flash = `revealed-1-${billable_units}-${status === 'complete' ? 0 : 1}`;
    return redirectAfterPost(`/dashboard/reveals/${reveal_id}`, flash);
  }
  if (revealed.status !== 429 && revealed.status !== 503) return askReveal(page, revealed);
  // The reveal may have been recorded. This page reads nothing, because the read may fail as well.
  const again = html`<p><strong>Send it again from this page:</strong> however often, it is one reveal and at most one
    unit.</p>`;
  return question(page, idempotencyKey, again, revealed);
}

async function receipt(page: PageContext): Promise<Reply> {
  const found = await page.api<RevealBody>('GET', '/v1/reveals/:reveal_id');
  if (!found.ok) return missing(page, 'No receipt', found);
  const { body } = found;
  return show(page, {
    title: body.result === null ? 'Receipt' : titleOf(body.result),
    section: 'Sessions',
    showsCountry: true,
    up: [`/dashboard/sessions/${body.session_id}`, 'Session'],
    content: html`${
      body.result === null
        ? html`<p class="notice wait">The company is being looked up. <a class="reload" href="">Look again</a></p>`
        : resultCard(body.result)
    }
    <h2>Receipt</h2>${ui.facts([
      ['State', body.status === 'complete' ? ui.badge('complete', 'good') : ui.badge('pending', 'wait')],
      ['Units', unitsText(page.reads.price, body.billable_units)],
      ['Asked', page.time(body.created_at)],
      ['Completed', page.time(body.completed_at, 'not yet')],
      ['Kept until', page.time(body.expires_at)],
      ['Id', html`<code>${body.reveal_id}</code>`],
    ])}`,
  });
}

type Fields = Readonly<Record<string, unknown>>;

/** What a reveal or a lookup found. */
export interface FoundResult {
  readonly match_type: string | null;
  readonly company: Fields | null;
  readonly network: Fields | null;
}

const titleOf = ({ match_type, company }: FoundResult): string =>
  match_type === 'company' && typeof company?.name === 'string' ? company.name : 'No company found';

/** The known fields of a result. What is no company is not called one: its fields are the network's. */
export function resultCard({ match_type, company, network }: FoundResult): Content {
  const isCompany = match_type === 'company';
  return html`<div class="columns">${known(isCompany ? 'Company' : 'Who runs the network', company)}
    ${known('Network', network)}</div>
    ${!isCompany && html`<p class="soft">${match_type === 'isp' ? 'The address belongs to an internet provider, so its users may be anyone.' : 'Nobody knows a company behind this address.'}</p>`}`;
}

/** The known fields; null for an object without any. */
export function known(title: string, fields: Fields | null): Content {
  const pairs = Object.entries(fields ?? {}).filter(([, value]) => value !== null);
  return html`<section class="panel"><h2>${title}</h2>${
    pairs.length === 0
      ? html`<p>Nothing was found.</p>`
      : ui.facts(pairs.map(([name, value]) => [wordsOf(name), textOfValue(name, String(value))]))
  }</section>`;
}

function wordsOf(name: string): string {
  const words = name.replaceAll('_', ' ').replace(/\b(url|isp|naics|sic)\b/g, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function textOfValue(name: string, value: string): Content {
  if (value === 'true') return 'yes';
  if (value === 'false') return 'no';
  return /^(website|linkedin_url)$/.test(name) && /^https?:\/\/\S+$/.test(value)
    ? html`<a href="${value}" rel="noreferrer nofollow">${value}</a>`
    : value;
}
