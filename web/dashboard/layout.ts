import type { Reply } from '../../http/contract/route.ts';
import { FAVICON } from '../../http/docs/mark.ts';
import { afterFlash, flashIn, htmlAnswer } from './answers.ts';
import type { PageContext, Refused } from './api.ts';
import {
  alert,
  type Content,
  confirmation,
  counted,
  form,
  type Html,
  html,
  type Question,
} from './components.ts';
import { icon, mark } from './icons.ts';
import { linkTo } from './scope.ts';

/** The message after a redirect, chosen by name, so that a link cannot put text into a page. */
const DONE: Readonly<Record<string, string>> = {
  'logged-out': 'You are logged out.',
  'no-cookie':
    'Your name and password are right, but your browser has not kept the cookie of the login. Open the dashboard over https, or on the machine that it runs on, and let the browser keep its cookies.',
  'password-changed': 'Your password is changed. Other logins of yours have ended.',
  'login-ended': 'The login has ended.',
  'logins-ended': 'All your other logins have ended.',
  'time-zone-set': 'Times are shown in this zone from now on.',
  'second-factor-off': 'The second factor is off. Logins ask for your password alone.',
  joined: 'Welcome. You are logged in.',
  'invitation-withdrawn': 'The invitation is withdrawn. Its link does not work any more.',
  'role-changed': 'The role is changed.',
  'user-removed': 'The user is removed. All logins of that user have ended.',
  'second-factor-required': 'A second factor is required. Users without one set it up on their next page.',
  'second-factor-optional': 'A second factor is not required any more.',
  'key-updated': 'The limits are changed. Every process has them within a second.',
  'key-revoked': 'The key is revoked. Nothing more is answered to it.',
  'tracker-created': 'The website is added. Put its snippet on the pages.',
  'tracker-changed': 'The website is changed.',
  'tracker-disabled': 'The website is disabled: it takes no visits until it is enabled again.',
  'tracker-enabled': 'The website is enabled.',
  'tracker-deleted': 'The website is deleted. Its sessions stay readable until they expire.',
  'webhook-changed': 'The endpoint is changed.',
  'webhook-paused': 'The endpoint is paused. What is pending waits.',
  'webhook-enabled': 'The endpoint is enabled.',
  'webhook-tested': 'The test is on its way. This page shows how it went.',
  'webhook-deleted': 'The endpoint is deleted. Its history stays for 90 days.',
  'delivery-retried': 'The delivery is being retried.',
  'domain-added': 'The domain is added. It becomes active once its DNS points here.',
  'domain-given-up': 'The domain is given up.',
  'audit-begun': 'The audit has begun. The result appears here.',
  'audit-recent': 'The last audit is recent, so no other one was begun. Try again later.',
  'audit-too-large':
    'The ledger is too large for an audit on this page. Ask the operator of the service for one: doorplate audit billing.',
};

/** How many sessions a form has revealed, their units, and how many are still looked up. */
const REVEALED = /^revealed-(\d{1,3})-(\d{1,3})-(\d{1,3})$/;

export function flashMessage(flash: string | null): string | null {
  if (flash === null) return null;
  const [, ...numbers] = REVEALED.exec(flash) ?? [];
  if (numbers.length === 0) return Object.hasOwn(DONE, flash) ? (DONE[flash] ?? null) : null;
  const [sessions = 0, units = 0, pending = 0] = numbers.map(Number);
  const more = ` so far. ${counted(pending, 'is', 'are')} still being looked up: each costs a unit if a company or network is found`;
  return `${counted(sessions, 'session is', 'sessions are')} revealed, for ${counted(units, 'unit')}${pending === 0 ? '' : more}.`;
}

interface Place {
  readonly name: string;
  readonly path: string;
  /** The pages of a section that has several. They show below it while one of them is open. */
  readonly pages?: readonly (readonly [path: string, name: string])[];
}

/** What visitors did; what collects and passes it on; the account. */
const NAVIGATION = [
  [
    { name: 'Home', path: '/dashboard' },
    { name: 'Companies', path: '/dashboard/companies' },
    { name: 'Sessions', path: '/dashboard/sessions' },
    { name: 'Look up', path: '/dashboard/lookup' },
  ],
  [
    {
      name: 'Websites',
      path: '/dashboard/trackers',
      pages: [['/dashboard/domains', 'Custom domains']],
    },
    { name: 'Webhooks', path: '/dashboard/webhooks' },
    { name: 'Keys', path: '/dashboard/keys' },
  ],
  [
    {
      name: 'Usage and billing',
      path: '/dashboard/usage',
      pages: [
        ['/dashboard/usage', 'Usage'],
        ['/dashboard/billing', 'Billing'],
      ],
    },
    {
      name: 'Settings',
      path: '/dashboard/account',
      pages: [
        ['/dashboard/account', 'Your account'],
        ['/dashboard/team', 'Team'],
        ['/dashboard/activity', 'Activity'],
      ],
    },
  ],
] as const satisfies readonly (readonly Place[])[];

type Section = (typeof NAVIGATION)[number][number]['name'];

export interface Page {
  readonly title: string;
  readonly section: Section;
  readonly content: Content;
  /** The path of the page that is open, in a section with several. */
  readonly tab?: string;
  /** The list or the thing that the page belongs to. */
  readonly up?: readonly [path: string, name: string];
  /** The state of the thing, beside the title. */
  readonly state?: Content;
  /** Small pickers of what the page shows, beside the title. */
  readonly pickers?: Content;
  /** Buttons and links beside the title. */
  readonly actions?: Content;
  /** The pages of one thing, and the path of the one that is open. */
  readonly tabs?: {
    readonly pages: readonly (readonly [path: string, name: string])[];
    readonly here: string;
  };
  /** The filters that are active. */
  readonly chips?: Content;
  readonly refused?: Refused;
  /** Whether the page shows a visitor's country, whose source must be named. */
  readonly showsCountry?: boolean;
  readonly status?: number;
}

const COUNTRY_SOURCE = html`Visitor countries:
  <a href="https://db-ip.com" rel="noreferrer">IP Geolocation by DB-IP</a>, CC BY 4.0. `;

const SUSPENDED = html`<div class="notice bad" role="status"><p><strong>This account is suspended.</strong> Its keys and websites are refused, and
  deliveries and reveals wait. Everything can be read and nothing changed. Ask the operator of this service, who can resume it.</p></div>`;

const brand = (): Html => html`<a class="brand" href="/dashboard">${mark()}Doorplate</a>`;

/** Renders a page of the dashboard around its content. */
export function show(context: PageContext, page: Page): Reply {
  const { title, content, up, state, pickers, actions, tabs, chips, refused = null } = page;
  const status = page.status ?? refused?.status ?? 200;
  const said = flashIn(context.request);
  const flash = flashMessage(said);
  const answer = htmlAnswer(
    status,
    page_(
      title,
      html`<header class="top">${brand()}<button class="quiet" popovertarget="menu">Menu</button></header>
      ${sideBar(context, page)}
      <main id="main" tabindex="-1">
        ${up && html`<p class="up-link"><a href="${up[0]}">${up[1]}</a></p>`}
        <div class="head"><h1>${title}</h1>${state}${(pickers || actions) && html`<div class="tools">${pickers}${actions}</div>`}</div>
        ${tabs && html`<nav class="tabs" aria-label="Pages of ${title}"><ul>${tabs.pages.map(([path, name]) => link(context, path, name, path === tabs.here))}</ul></nav>`}
        ${flash && refused === null && html`<p class="said" role="status">${flash}</p>`}
        ${context.user.is_suspended && SUSPENDED}
        ${refused && alert(refused)}
        ${chips}
        ${content}
        <footer>${page.showsCountry && COUNTRY_SOURCE}Times are in ${context.user.time_zone}
          (<a href="/dashboard/account">change</a>); days are UTC days. <a href="/docs">API documentation</a></footer>
      </main>`,
    ),
    refused?.retryAfter,
  );
  return said === null ? answer : afterFlash(answer);
}

function sideBar(context: PageContext, { section, tab }: Page): Html {
  const entry = ({ name, path, pages = [] }: Place): Html => {
    const isOpen = name === section;
    const here = tab ?? path;
    const isHere = isOpen && here === path && pages.every(([sub]) => sub !== path);
    return html`<li><a href="${linkTo(path, context.scope.query)}"${isOpen && html` class="open"`}${isHere && html` aria-current="page"`}>${icon(name as Section)}${name}</a>${
      isOpen &&
      pages.length > 0 &&
      html`<ul>${pages.map(([sub, text]) => link(context, sub, text, sub === here))}</ul>`
    }</li>`;
  };
  return html`<div class="side" id="menu" popover>
    <nav class="places" aria-label="Sections">${brand()}${NAVIGATION.map((group) => html`<ul class="group">${group.map(entry)}</ul>`)}</nav>
    <section class="you" aria-label="Your login">${form(
      context,
      '/dashboard/logout',
      html`<span class="who"><strong>${context.user.name}</strong> ${context.user.partner_name}, ${context.user.role}</span>
      <button class="quiet">Log out</button>`,
    )}</section>
  </div>`;
}

export type AskPage = Omit<Page, 'content'> & Question;

/** Renders a page that asks before a change. */
export const ask = (page: PageContext, asked: AskPage): Reply =>
  show(page, { ...asked, content: confirmation(page, asked) });

/** Keeps the period and the website from page to page. */
const link = ({ scope }: PageContext, path: string, name: string, here: boolean): Html =>
  html`<li><a href="${linkTo(path, scope.query)}"${here && html` aria-current="page"`}>${name}</a></li>`;

export const showBare = (title: string, content: Content, status = 200, retryAfter?: number): Reply =>
  htmlAnswer(
    status,
    page_(
      title,
      html`<main id="main" class="bare" tabindex="-1"><p class="brand">${mark()}Doorplate</p>
      <div class="panel"><h1>${title}</h1>${content}</div></main>`,
    ),
    retryAfter,
  );

const page_ = (title: string, body: Content): Html => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Doorplate</title>
<link rel="icon" href="${FAVICON}">
<link rel="preload" href="/dashboard/assets/geist.woff2" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="/dashboard/assets/style.css">
<script defer src="/dashboard/assets/app.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
${body}
</body>
</html>
`;
