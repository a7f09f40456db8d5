import type { Reply } from '../../../http/contract/route.ts';
import { isCnameTarget } from '../../../http/server/own-host.ts';
import { listDomainsOfPartner } from '../../../read-api/domains/domains.ts';
import type { DomainBody } from '../../../read-api/domains/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { listTrackers, mayChange, type PageContext, type Refused, textOf } from '../api.ts';
import * as ui from '../components.ts';
import { html } from '../components.ts';
import { show } from '../layout.ts';
import { websitePicker } from '../pickers.ts';
import { action, type Resource, resourceRoutes } from '../resource.ts';
import { get, type PageRoute, post } from '../routes.ts';
import { linkTo } from '../scope.ts';

const PATH = '/dashboard/domains';
const DOMAIN = '/v1/trackers/:tracker_id/domains/:domain_id';

const domains: Resource<DomainBody> = {
  path: `${PATH}/:tracker_id/:domain_id`,
  find: ({ api }) => api<DomainBody>('GET', DOMAIN),
  missing: (page, why) => list(page, why),
  show: showDomain,
  actions: [
    action('delete', 'member', ({ api }) => api('DELETE', DOMAIN), 'domain-given-up', {
      ask: askDelete,
      leadsTo: PATH,
      refusedOn: 'list',
    }),
  ],
};

function askDelete(_page: PageContext, { hostname }: DomainBody) {
  return {
    title: `Give up ${hostname}?`,
    section: 'Websites',
    tab: PATH,
    text: html`<p>Snippets with this name stop working. Change them to the website's own snippet first.</p>`,
    button: 'Give the domain up',
  } as const;
}

/** Customers' host names that serve the pixel. */
export const domainPages: readonly PageRoute[] = [
  get(PATH, (page) => list(page)),
  get(`${PATH}/new`, (page) => addPage(page), { needs: 'member' }),
  post(PATH, 'member', create),
  ...resourceRoutes(domains),
];

async function list(page: PageContext, refused: Refused = null): Promise<Reply> {
  const [{ trackers, failed }, domains] = await Promise.all([
    listTrackers(page),
    listDomainsOfPartner(page.reads.db, page.user.partner_id),
  ]);
  const name = ui.namesOfTrackers(trackers);
  const chosen = page.query.get('tracker_id') ?? '';
  const shown = chosen === '' ? domains : domains.filter(({ tracker_id }) => tracker_id === chosen);
  const canAdd = mayChange(page) && hasHostName(page) && trackers.length > 0;
  const add =
    canAdd &&
    html`<a class="button" href="${linkTo(`${PATH}/new`, { tracker_id: chosen })}">Add a domain</a>`;
  return show(page, {
    title: 'Custom domains',
    section: 'Websites',
    tab: PATH,
    refused: refused ?? failed,
    pickers: trackers.length > 1 && websitePicker(page, trackers, chosen),
    actions: domains.length > 0 && add,
    content: html`${mayChange(page) && !hasHostName(page) && ui.notice(html`<p>${NO_HOST_NAME}</p>`)}
    ${ui.tableOr(
      domains.length > 0
        ? ui.noMatch(PATH)
        : ui.nothingYet(
            'No domains yet',
            html`A host name of your customer’s own, under which the pixel is a part of the website.
          ${!mayChange(page) && ui.OTHERS_ADD}
          ${mayChange(page) && trackers.length === 0 && html`It belongs to a website: <a href="/dashboard/trackers/new">add one first</a>.`}`,
            add,
          ),
      ui.counted(shown.length, 'custom domain'),
      ['Host name', 'State', 'Website', 'What is wrong', 'Added'],
      shown.map((domain) => [
        html`<a href="${PATH}/${domain.tracker_id}/${domain.domain_id}">${domain.hostname}</a>`,
        stateOf(domain),
        name(domain.tracker_id),
        trouble(domain.last_error),
        page.time(domain.created_at),
      ]),
      { minor: [4], isWhole: true },
    )}`,
  });
}

async function addPage(page: PageContext, refused: Refused = null): Promise<Reply> {
  const { trackers, failed } = await listTrackers(page);
  const chosen = textOf(page, 'tracker_id') || (page.query.get('tracker_id') ?? '');
  return show(page, {
    title: 'Add a domain',
    section: 'Websites',
    tab: PATH,
    up: [PATH, 'Custom domains'],
    refused: refused ?? failed,
    content: html`<section class="panel">${ui.form(
      page,
      PATH,
      html`${ui.trackerSelect(trackers, chosen)}
        ${ui.field('Host name', 'hostname', { value: textOf(page, 'hostname'), required: true, maxlength: 253, hint: html`<code>visits.example.com</code>, for example. The next page says where it must point.` })}
        <button>Add the domain</button>`,
    )}</section>`,
  });
}

const TONES = { pending: 'wait', active: 'good', failed: 'bad' } as const;
const stateOf = ({ status }: Pick<DomainBody, 'status'>) => ui.badge(status, TONES[status]);

const TROUBLES: Readonly<Record<string, string>> = {
  no_such_name: 'The name does not exist yet.',
  no_cname: 'The name has no CNAME record.',
  points_elsewhere: 'The CNAME points elsewhere.',
  cname_loop: 'The CNAME records lead in a circle.',
  cname_too_long: 'Too many CNAME records follow each other.',
  dns_timeout: 'The name server did not answer in time.',
  dns_error: 'The name server answered with an error.',
  not_verified: 'The CNAME is right. The TXT record is missing.',
  claimed_elsewhere: 'Another account has shown that the name is its own.',
};
const trouble = (error: string | null): string => (error === null ? '–' : (TROUBLES[error] ?? error));

const NO_HOST_NAME =
  'Custom domains are CNAME records, which point at a host name. This service is reached by an address: the operator has to set PUBLIC_URL to a host name first.';

/** Whether the service has a name that a CNAME record can hold. */
const hasHostName = ({ publicUrl }: PageContext): boolean => isCnameTarget(new URL(publicUrl).hostname);

async function create(page: PageContext): Promise<Reply> {
  const params = { tracker_id: textOf(page, 'tracker_id') };
  const body = { hostname: textOf(page, 'hostname') };
  const made = await page.api<DomainBody>('POST', '/v1/trackers/:tracker_id/domains', { params, body });
  if (!made.ok) return addPage(page, made);
  return redirectAfterPost(`${PATH}/${made.body.tracker_id}/${made.body.id}`, 'domain-added');
}

const pathOf = ({ tracker_id, id }: DomainBody): string => `${PATH}/${tracker_id}/${id}`;

function showDomain(page: PageContext, domain: DomainBody): Reply {
  return show(page, {
    title: domain.hostname,
    section: 'Websites',
    tab: PATH,
    up: [PATH, 'Custom domains'],
    state: stateOf(domain),
    content: html`${ui.facts([
      ['Added', page.time(domain.created_at)],
      ['Active since', page.time(domain.activated_at, 'not yet')],
      ['Last checked', page.time(domain.checked_at, 'not yet')],
      ['What is wrong', trouble(domain.last_error)],
    ])}
    ${ui.panel(
      'DNS',
      html`<p>Create this record at the provider of your DNS:</p>
      ${ui.copyable('DNS record', `${domain.hostname}. CNAME ${domain.cname_target}.`)}
      ${
        domain.verification !== null &&
        html`<p>And this one, because another account claims or had the name. It proves that the name is yours:</p>
        ${ui.copyable('TXT record', `${domain.verification.name}. TXT "${domain.verification.value}"`)}`
      }
      ${
        domain.status === 'pending' &&
        html`<p class="soft">The record is checked again and again, for seven days.
        <a class="reload" href="">Look again</a></p>`
      }
      ${
        domain.status === 'failed' &&
        mayChange(page) &&
        ui.form(
          page,
          PATH,
          html`<input type="hidden" name="tracker_id" value="${domain.tracker_id}">
        <input type="hidden" name="hostname" value="${domain.hostname}"><button>Try again</button>`,
        )
      }`,
    )}
    ${domain.snippet !== null && ui.panel('Install', ui.copyable('Snippet', domain.snippet))}
    ${
      mayChange(page) &&
      html`<section class="panel danger"><h2>Give up</h2><p>Snippets with this name stop working.</p>
        <p><a class="button danger" href="${pathOf(domain)}/delete">Give the domain up…</a></p></section>`
    }`,
  });
}
