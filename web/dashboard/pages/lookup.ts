import { isoTime } from '../../../domain/kernel/time.ts';
import type { Reply } from '../../../http/contract/route.ts';
import { shellQuoted } from '../../../http/contract/shell-text.ts';
import { findCallingKey, listLatestKeys } from '../../../queries/partners/partners.ts';
import type { KeyChanges } from '../../../write-api/partners/keys.ts';
import { redirectAfterPost } from '../answers.ts';
import {
  type Api,
  type ApiAnswer,
  commandOf,
  type ErrorAnswer,
  errorAnswer,
  isOwner,
  mayChange,
  type PageContext,
  textOf,
} from '../api.ts';
import * as ui from '../components.ts';
import { type Content, html } from '../components.ts';
import { show } from '../layout.ts';
import { get, type PageRoute, post } from '../routes.ts';
import { linkTo } from '../scope.ts';
import { ceilingsOf, within } from './keys.ts';
import { resultCard } from './reveals.ts';

/** The body of a lookup (contract, Lookup 1 and 2), complete or pending. */
interface LookupBody {
  readonly status: string;
  readonly ip: string;
  readonly match_type?: string;
  readonly company?: Readonly<Record<string, unknown>> | null;
  readonly network?: Readonly<Record<string, unknown>> | null;
  readonly enriched_at?: string | null;
  readonly fresh_until?: string | null;
  readonly refresh_status?: string;
  readonly submitted_at?: string;
  readonly next_attempt_at?: string | null;
}

const PATH = '/dashboard/lookup';

/** One address, asked for as the API would be: with a key of the partner's, whose limits and usage it counts against. */
export const lookupPages = (changes: KeyChanges): PageRoute[] => [
  get(PATH, (page) => lookup(page)),
  post(PATH, 'member', submit),
  post(`${PATH}/first-key`, 'owner', (page) => lookUpWithFirstKey(changes, page)),
];

/** The API as a key of the partner calls it, with its limits and its usage; null: there is no such key, or it cannot be used now. */
async function asKey({ reads, user, apiAs }: PageContext, key_id: string): Promise<Api | null> {
  const key = await findCallingKey(reads, { partner_id: user.partner_id, key_id });
  return key && apiAs(key);
}

async function lookup(page: PageContext, failed: ErrorAnswer | null = null): Promise<Reply> {
  const { reads, user, request } = page;
  const keys = await listLatestKeys(reads.db, user.partner_id, isoTime(request.receivedAt), 0);
  const ip = textOf(page, 'ip') || (page.query.get('ip')?.trim() ?? '');
  const asked = textOf(page, 'key_id') || (page.query.get('key_id') ?? '');
  const key = keys.find(({ key_id }) => key_id === asked) ?? keys[0];
  if (key === undefined) {
    return show(page, {
      title: 'Look up',
      section: 'Look up',
      refused: failed,
      content: html`${ui.nothingYet(
        'No key yet',
        html`A lookup is made with one of your keys, within its limits. ${isOwner(page) ? 'The first one is made with it: nobody sees it, and only this page uses it.' : 'An owner of your team creates keys.'}`,
      )}
      ${isOwner(page) && ui.form(page, `${PATH}/first-key`, html`${addressField(ip)}<button>Create a key and look up</button>`, 'filter')}`,
    });
  }
  // A page with an address alone only fills in the form, and so does a link of another site: asking is counted.
  const shows = failed === null && ip !== '' && page.query.has('key_id') && !isFromElsewhere(page);
  const api = shows ? await asKey(page, asked) : null;
  const answer = api === null ? null : await api<LookupBody>('GET', '/v1/lookup', { query: { ip } });
  const fields = html`${addressField(ip)}
    ${ui.select(
      'With key',
      'key_id',
      keys.map(({ key_id, name }) => [key_id, name] as const),
      key.key_id,
    )}
    <button>Look up</button>`;
  return show(page, {
    title: 'Look up',
    section: 'Look up',
    refused: failed ?? (shows && api === null ? UNUSABLE : null),
    content: html`${
      mayChange(page)
        ? ui.form(page, PATH, fields, 'panel row')
        : html`<form class="panel row" method="get" action="${PATH}">${fields}</form>`
    }
    <p class="soft">Counts as a request of the key. An address that nobody has asked for yet is enriched, which counts towards the
      key's new enrichments of the day. A lookup costs no unit.</p>
    ${answer !== null && result(page, answer, ip)}
    ${ip !== '' && curls(page.publicUrl, ip)}`,
  });
}

const addressField = (ip: string): Content =>
  ui.field('IP address', 'ip', { value: ip, required: true, maxlength: 45, hint: 'IPv4 or IPv6, public.' });

const UNUSABLE = errorAnswer(
  409,
  'key_not_found',
  'This key cannot be used: it was revoked, has expired, or the account is suspended.',
);

/** Browsers say whether a page of another site leads here. */
function isFromElsewhere({ request }: PageContext): boolean {
  const site = request.header('sec-fetch-site');
  return site === 'cross-site' || site === 'same-site';
}

type Answer = ApiAnswer<LookupBody>;

function result(page: PageContext, answer: Answer, ip: string): Content {
  if (!answer.ok) {
    return answer.code === 'not_requested'
      ? ui.nothingYet('Not looked up yet', `${ip} was never looked up. Press “Look up” to enrich it.`)
      : ui.alert(answer);
  }
  const { body } = answer;
  if (body.status !== 'complete') {
    return html`<p class="notice wait" role="status">${ui.badge('enriching', 'wait')} The providers are being asked since
      ${page.time(body.submitted_at ?? null, 'a moment ago')}. This page fills itself in.
      <a class="reload" href="">Look again</a></p>${json(body)}`;
  }
  return html`<h2>${body.ip}</h2>
    ${resultCard({ match_type: body.match_type ?? null, company: body.company ?? null, network: body.network ?? null })}
    ${ui.facts([
      ['Enriched', page.time(body.enriched_at ?? null)],
      ['Fresh until', page.time(body.fresh_until ?? null)],
      [
        'Refresh',
        body.refresh_status === 'not_needed'
          ? 'not needed'
          : (body.refresh_status ?? '').replaceAll('_', ' '),
      ],
    ])}${json(body)}`;
}

const json = (body: unknown): Content =>
  ui.panel('JSON', ui.copyable('JSON answer', JSON.stringify(body, null, 2)));

const curls = (publicUrl: string, ip: string): Content =>
  ui.panel(
    'The same with curl',
    ui.copyable(
      'curl command',
      `curl -H "Authorization: Bearer $DOORPLATE_API_KEY" -H "Content-Type: application/json" \\
  -d ${shellQuoted(JSON.stringify({ ip }))} ${shellQuoted(`${publicUrl}/v1/lookup`)}`,
    ),
  );

async function submit(page: PageContext): Promise<Reply> {
  const key_id = textOf(page, 'key_id');
  const api = await asKey(page, key_id);
  return api === null ? lookup(page, UNUSABLE) : lookUp(page, api, key_id);
}

async function lookUp(page: PageContext, api: Api, key_id: string): Promise<Reply> {
  const ip = textOf(page, 'ip');
  const answer = await api<LookupBody>('POST', '/v1/lookup', { body: { ip } });
  return answer.ok ? redirectAfterPost(linkTo(PATH, { ip, key_id })) : lookup(page, answer);
}

/** Makes a key that nobody has seen, so that it gives nobody access, for an account without any. */
async function lookUpWithFirstKey({ create, usualLimits }: KeyChanges, page: PageContext): Promise<Reply> {
  const { reads, user, request } = page;
  const keysNow = async () => {
    await reads.waitForHead(['partners'])();
    return listLatestKeys(reads.db, user.partner_id, isoTime(request.receivedAt), 0);
  };
  if ((await keysNow()).length === 0) {
    const limits = within(usualLimits, await ceilingsOf(page));
    const made = await create(user.partner_id, 'Dashboard', limits, commandOf(page));
    // A second press at the same moment finds the key of the first.
    if (!made.ok && made.code !== 'key_name_taken') return lookup(page, made);
  }
  const key_id = (await keysNow())[0]?.key_id ?? '';
  const api = await asKey(page, key_id);
  return api === null ? lookup(page, UNUSABLE) : lookUp(page, api, key_id);
}
