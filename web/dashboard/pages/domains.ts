import type { Reply } from '../../../http/contract/route.ts';
import { isCnameTarget } from '../../../http/server/own-host.ts';
import { listDomainsOfPartner } from '../../../read-api/domains/domains.ts';
import type { DomainBody } from '../../../read-api/domains/schemas.ts';
import { redirectAfterPost } from '../answers.ts';
import { listTrackers, mayChange, type PageContext, type Refused, textOf } from '../api.ts';
import {
  badge,
  copyable,
  counted,
  facts,
  field,
  form,
  html,
  namesOfTrackers,
  noMatch,
  nothingYet,
  notice,
  OTHERS_ADD,
  tableOr,
  trackerSelect,
} from '../components.ts';
import { show } from '../layout.ts';
import { action, type Resource, resourceRoutes } from '../resource.ts';
import { get, type PageRoute, post } from '../routes.ts';

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
    text: html`<p>Snippets with this name stop working. Change them to the tracker's own snippet first.</p>`,
    button: 'Give the domain up',
  } as const;
}

/** Customers' host names that serve the pixel. */
export const domainPages: readonly PageRoute[] = [
  get(PATH, (page) => list(page)),
  post(PATH, 'member', create),
  ...resourceRoutes(domains),
];

async function list(page: PageContext, refused: Refused = null): Promise<Reply> {
  const [{ trackers, failed }, domains] = await Promise.all([
    listTrackers(page),
    listDomainsOfPartner(page.reads.db, page.user.partner_id),
  ]);
  const name = namesOfTrackers(trackers);
  const chosen = textOf(page, 'tracker_id') || (page.query.get('tracker_id') ?? '');
  const shown = chosen === '' ? domains : domains.filter(({ tracker_id }) => tracker_id === chosen);
  const hasForm = mayChange(page) && hasHostName(page) && trackers.length > 0;
  return show(page, {
    title: 'Custom domains',
    section: 'Websites',
    tab: PATH,
    refused: refused ?? failed,
    content: html`${
      trackers.length > 1 &&
      html`<form class="filter" method="get">${trackerSelect(trackers, chosen, 'All websites')}<button class="quiet">Apply</button></form>`
    }
    ${tableOr(
      domains.length > 0
        ? noMatch(PATH)
        : nothingYet(
            'No domains yet',
            html`A host name of your customer’s own, under which the pixel is a part of the website.
          ${mayChange(page) ? hasForm && 'Add the first one below.' : OTHERS_ADD}`,
          ),
      counted(shown.length, 'custom domain'),
      ['Host name', 'State', 'Website', 'What is wrong', 'Added'],
      shown.map((domain) => [
        html`<a href="${PATH}/${domain.tracker_id}/${domain.domain_id}">${domain.hostname}</a>`,
        stateOf(domain),
        name(domain.tracker_id),
        trouble(domain.last_error),
        page.time(domain.created_at),
      ]),
    )}
    ${
      !mayChange(page)
        ? null
        : !hasHostName(page)
          ? notice(html`<p>${NO_HOST_NAME}</p>`)
          : trackers.length === 0
            ? html`<p>A domain belongs to a website: <a href="/dashboard/trackers">add one first</a>.</p>`
            : html`<section><h2>Add a domain</h2>${form(
                page,
                PATH,
                html`${trackerSelect(trackers, chosen)}
            ${field('Host name', 'hostname', { value: textOf(page, 'hostname'), required: true, maxlength: 253, hint: html`<code>visits.example.com</code>, for example. The next page says where it must point.` })}
            <button>Add the domain</button>`,
              )}</section>`
    }`,
  });
}

const TONES = { pending: 'wait', active: 'good', failed: 'bad' } as const;
const stateOf = ({ status }: Pick<DomainBody, 'status'>) => badge(status, TONES[status]);

const TROUBLES: Readonly<Record<string, string>> = {
  no_such_name: 'The name does not exist yet.',
  no_cname: 'The name has no CNAME record.',
  points_elsewhere: 'The CNAME points elsewhere.',
  cname_loop: 'The CNAME records lead in a circle.',
  cname_too_long: 'Too many CNAME records follow each other.',
  dns_timeout: 'Its name server did not answer in time.',
  dns_error: 'Its name server answered with an error.',
  not_verified: 'The CNAME is right. The TXT record is missing.',
  claimed_elsewhere: 'Another account has shown that the name is its own.',
};
const trouble = (error: string | null): string => (error === null ? '–' : (TROUBLES[error] ?? error));

const NO_HOST_NAME =
  'Custom domains are CNAME records, which point at a host name. This service is reached by an address: whoever runs it has to set PUBLIC_URL to a host name first.';

/** Whether the service has a name that a CNAME record can hold. */
const hasHostName = ({ publicUrl }: PageContext): boolean => isCnameTarget(new URL(publicUrl).hostname);

async function create(page: PageContext): Promise<Reply> {
  const params = { tracker_id: textOf(page, 'tracker_id') };
  const body = { hostname: textOf(page, 'hostname') };
  const made = await page.api<DomainBody>('POST', '/v1/trackers/:tracker_id/domains', { params, body });
  if (!made.ok) return list(page, made);
  return redirectAfterPost(`${PATH}/${made.body.tracker_id}/${made.body.id}`, 'domain-added');
}

const pathOf = ({ tracker_id, id }: DomainBody): string => `${PATH}/${tracker_id}/${id}`;

function showDomain(page: PageContext, domain: DomainBody): Reply {
  return show(page, {
    title: domain.hostname,
    section: 'Websites',
    tab: PATH,
    content: html`${facts([
      ['State', stateOf(domain)],
      ['Added', page.time(domain.created_at)],
      ['Active since', page.time(domain.activated_at, 'not yet')],
      ['Last looked at', page.time(domain.checked_at, 'not yet')],
      ['What is wrong', trouble(domain.last_error)],
    ])}
    <section><h2>DNS</h2><p>Whoever keeps the domain makes this record:</p>
      ${copyable('DNS record', `${domain.hostname}. CNAME ${domain.cname_target}.`)}
      ${
        domain.verification !== null &&
        html`<p>And this one, because another account claims or had the name. It shows that the name is yours:</p>
        ${copyable('TXT record', `${domain.verification.name}. TXT "${domain.verification.value}"`)}`
      }
      ${
        domain.status === 'pending' &&
        html`<p class="notice">It is looked for again and again, for seven days.
        <a class="reload" href="">Look again</a></p>`
      }
      ${
        domain.status === 'failed' &&
        mayChange(page) &&
        form(
          page,
          PATH,
          html`<input type="hidden" name="tracker_id" value="${domain.tracker_id}">
        <input type="hidden" name="hostname" value="${domain.hostname}"><button>Try again</button>`,
        )
      }</section>
    ${domain.snippet !== null && html`<section><h2>Install</h2>${copyable('Snippet', domain.snippet)}</section>`}
    ${mayChange(page) && html`<p><a class="button danger" href="${pathOf(domain)}/delete">Give the domain up…</a></p>`}
    <p><a href="${PATH}">All domains</a></p>`,
  });
}
