import type { Reply } from '../../../http/contract/route.ts';
import { shellQuoted } from '../../../http/contract/shell-text.ts';
import { redirectAfterPost } from '../answers.ts';
import {
  type Api,
  type ApiAnswer,
  type ErrorAnswer,
  isOwner,
  mayChange,
  textOf,
  type Visit,
} from '../api.ts';
import {
  alert,
  badge,
  type Content,
  copyable,
  facts,
  field,
  form,
  html,
  nothingYet,
  select,
} from '../components.ts';
import { show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';
import { linkTo } from '../scope.ts';
import { resultCard } from './reveals.ts';

export interface LookupDeps {
  /** The partner's keys that can be used now. */
  readonly usableKeys: (
    partnerId: string,
  ) => Promise<readonly { readonly key_id: string; readonly name: string }[]>;
  /**
   * The API as a key calls it, with its limits and its usage; null: the partner has no such key, or it cannot be used now, as over
   * HTTP.
   */
  readonly asKey: (visit: Visit, keyId: string) => Promise<Api | null>;
}

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
export const lookupPages = (deps: LookupDeps): PageRoute[] => [
  { method: 'GET', path: PATH, handle: (visit) => lookup(deps, visit) },
  { method: 'POST', path: PATH, needs: 'member', handle: (visit) => submit(deps, visit) },
];

async function lookup(deps: LookupDeps, visit: Visit, failed: ErrorAnswer | null = null): Promise<Reply> {
  const keys = await deps.usableKeys(visit.user.partner_id);
  const ip = textOf(visit, 'ip') || (visit.query.get('ip')?.trim() ?? '');
  const asked = textOf(visit, 'key_id') || (visit.query.get('key_id') ?? '');
  const key = keys.find(({ key_id }) => key_id === asked) ?? keys[0];
  if (key === undefined) {
    return show(visit, {
      title: 'Look up',
      section: 'Look up',
      content: nothingYet(
        'No key yet',
        html`A lookup is made with one of your keys, within its limits. ${isOwner(visit) ? html`<a href="/dashboard/keys">Create a key</a>` : 'An owner of your team creates keys.'}`,
      ),
    });
  }
  // A page with an address alone only fills in the form, and so does a link of another site: asking is counted.
  const shows = failed === null && ip !== '' && visit.query.has('key_id') && !isFromElsewhere(visit);
  const api = shows ? await deps.asKey(visit, asked) : null;
  const answer = api === null ? null : await api<LookupBody>('GET', '/v1/lookup', { query: { ip } });
  const fields = html`${field('IP address', 'ip', { value: ip, required: true, maxlength: 45, hint: 'IPv4 or IPv6, public.' })}
    ${select(
      'With key',
      'key_id',
      keys.map(({ key_id, name }) => [key_id, name] as const),
      key.key_id,
    )}
    <button>Look up</button>`;
  return show(visit, {
    title: 'Look up',
    section: 'Look up',
    refused: failed ?? (shows && api === null ? UNUSABLE : null),
    content: html`${
      mayChange(visit)
        ? form(visit, PATH, fields, 'filter')
        : html`<form class="filter" method="get" action="${PATH}">${fields}</form>`
    }
    <p class="soft">Counts as a request of the key. An address that nobody has asked for yet is enriched, which counts towards the
      key's new enrichments of the day. A lookup costs no unit.</p>
    ${answer !== null && result(visit, answer, ip)}
    ${ip !== '' && curls(visit.publicUrl, ip)}`,
  });
}

const UNUSABLE: ErrorAnswer = {
  ok: false,
  status: 409,
  code: 'key_not_found',
  message: 'This key cannot be used: it was revoked, has expired, or the account is suspended.',
};

/** Browsers say whether a page of another site leads here. */
function isFromElsewhere({ request }: Visit): boolean {
  const site = request.header('sec-fetch-site');
  return site === 'cross-site' || site === 'same-site';
}

type Answer = ApiAnswer<LookupBody>;

function result(visit: Visit, answer: Answer, ip: string): Content {
  if (!answer.ok) {
    return answer.code === 'not_requested'
      ? nothingYet(
          'Not looked up yet',
          `Nobody has asked for ${ip} yet. Press “Look up” to have it enriched.`,
        )
      : alert(answer);
  }
  const { body } = answer;
  if (body.status !== 'complete') {
    return html`<p class="notice" role="status">${badge('enriching', 'wait')} The providers are being asked since
      ${visit.time(body.submitted_at ?? null, 'a moment ago')}. This page fills itself in.
      <a class="reload" href="">Look again</a></p>${json(body)}`;
  }
  return html`<h2>${body.ip}</h2>
    ${resultCard({ match_type: body.match_type ?? null, company: body.company ?? null, network: body.network ?? null })}
    ${facts([
      ['Enriched', visit.time(body.enriched_at ?? null)],
      ['Fresh until', visit.time(body.fresh_until ?? null)],
      [
        'Refresh',
        body.refresh_status === 'not_needed'
          ? 'not needed'
          : (body.refresh_status ?? '').replaceAll('_', ' '),
      ],
    ])}${json(body)}`;
}

const json = (body: unknown): Content =>
  html`<section><h2>JSON</h2>${copyable('JSON answer', JSON.stringify(body, null, 2))}</section>`;

const curls = (publicUrl: string, ip: string): Content =>
  html`<section><h2>The same with curl</h2>${copyable(
    'curl command',
    `curl -H "Authorization: Bearer $DOORPLATE_API_KEY" -H "Content-Type: application/json" \\
  -d ${shellQuoted(JSON.stringify({ ip }))} ${shellQuoted(`${publicUrl}/v1/lookup`)}`,
  )}</section>`;

async function submit(deps: LookupDeps, visit: Visit): Promise<Reply> {
  const [ip, key_id] = [textOf(visit, 'ip'), textOf(visit, 'key_id')];
  const api = await deps.asKey(visit, key_id);
  if (api === null) return lookup(deps, visit, UNUSABLE);
  const answer = await api<LookupBody>('POST', '/v1/lookup', { body: { ip } });
  return answer.ok ? redirectAfterPost(linkTo(PATH, { ip, key_id })) : lookup(deps, visit, answer);
}
