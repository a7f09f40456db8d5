import type { Reply } from '../../http/contract/route.ts';
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
  'second-factor-required': 'A second factor is required. Whoever has none sets one up with the next page.',
  'second-factor-optional': 'A second factor is not required any more.',
  'key-updated': 'The limits are changed. Every process has them within a second.',
  'key-revoked': 'The key is revoked. Nothing more is answered to it.',
  'tracker-created': 'The website is added. Put its snippet on the pages.',
  'tracker-changed': 'The tracker is changed. Visits are accepted from the websites that stand here.',
  'tracker-disabled': 'The tracker is disabled: it takes no visits until it is enabled again.',
  'tracker-enabled': 'The tracker is enabled.',
  'tracker-deleted': 'The tracker is deleted. Its sessions stay readable until they expire.',
  'webhook-changed': 'The endpoint is changed.',
  'webhook-paused': 'The endpoint is paused. What is pending waits.',
  'webhook-enabled': 'The endpoint is enabled.',
  'webhook-tested': 'A test is queued. It stands here as soon as it is under way.',
  'webhook-deleted': 'The endpoint is deleted. Its history stays for 90 days.',
  'delivery-retried': 'The delivery is being attempted anew.',
  'domain-added': 'The domain is added. It becomes active once its DNS points here.',
  'domain-given-up': 'The domain is given up.',
  'audit-begun': 'The audit has begun. Its verdict stands here as soon as it is done.',
  'audit-recent': 'The last audit is recent, so no other one was begun. Try again later.',
  'audit-too-large':
    'The ledger is too large for an audit on this page. Ask whoever runs the service for one: doorplate audit billing.',
};

/** How many sessions a form has revealed, their units, and how many are still looked up. */
const REVEALED = /^revealed-(\d{1,3})-(\d{1,3})-(\d{1,3})$/;

export function flashMessage(flash: string | null): string | null {
  if (flash === null) return null;
  const [, ...numbers] = REVEALED.exec(flash) ?? [];
  if (numbers.length === 0) return Object.hasOwn(DONE, flash) ? (DONE[flash] ?? null) : null;
  const [sessions = 0, units = 0, pending = 0] = numbers.map(Number);
  return `${counted(sessions, 'session is', 'sessions are')} revealed, for ${counted(units, 'unit')}.${
    pending === 0 ? '' : ` ${counted(pending, 'of them is', 'of them are')} still being looked up.`
  }`;
}

interface Place {
  readonly name: string;
  readonly path: string;
  /** The pages of a section that has several. */
  readonly tabs?: readonly (readonly [path: string, name: string])[];
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
      tabs: [
        ['/dashboard/trackers', 'Websites'],
        ['/dashboard/domains', 'Custom domains'],
      ],
    },
    { name: 'Webhooks', path: '/dashboard/webhooks' },
    { name: 'Keys', path: '/dashboard/keys' },
  ],
  [
    {
      name: 'Usage and billing',
      path: '/dashboard/usage',
      tabs: [
        ['/dashboard/usage', 'Usage'],
        ['/dashboard/billing', 'Billing'],
      ],
    },
    {
      name: 'Settings',
      path: '/dashboard/account',
      tabs: [
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
  /** The path of the tab that is open, in a section with tabs. */
  readonly tab?: string;
  /** Buttons and links beside the title. */
  readonly actions?: Content;
  readonly refused?: Refused;
  /** Whether the page shows a visitor's country, whose source must be named. */
  readonly showsCountry?: boolean;
  readonly status?: number;
}

const COUNTRY_SOURCE = html`<p>Visitor countries:
  <a href="https://db-ip.com" rel="noreferrer">IP Geolocation by DB-IP</a>, CC BY 4.0.</p>`;

const SUSPENDED = html`<p class="notice bad" role="status"><strong>This account is suspended.</strong> Its keys and websites are refused, and
  deliveries and reveals wait. Everything can be read and nothing changed. Ask the operator of this service, who can resume it.</p>`;

/** Renders a page of the dashboard around its content. */
export function show(context: PageContext, page: Page): Reply {
  const { title, section, content, refused = null, showsCountry = false } = page;
  const status = page.status ?? refused?.status ?? 200;
  const said = flashIn(context.request);
  const flash = flashMessage(said);
  const places: readonly Place[] = NAVIGATION.flat();
  const tabs = places.find(({ name }) => name === section)?.tabs;
  const answer = htmlAnswer(
    status,
    page_(
      title,
      html`<header class="top"><a class="brand" href="/dashboard">Doorplate</a>
        <button class="quiet menu" popovertarget="menu">Menu</button></header>
      <div class="side" id="menu" popover>
        <nav class="places" aria-label="Sections"><p><a class="brand" href="/dashboard">Doorplate</a></p>${NAVIGATION.map(
          (group) =>
            html`<ul class="group">${group.map(({ path, name }) => link(context, path, name, name === section))}</ul>`,
        )}</nav>
        <section class="you" aria-label="Your login">${form(
          context,
          '/dashboard/logout',
          html`<span class="who"><strong>${context.user.name}</strong> ${context.user.partner_name}, ${context.user.role}</span>
          <button class="quiet">Log out</button>`,
          'user',
        )}</section>
      </div>
      <main id="main" tabindex="-1">
        ${tabs !== undefined && html`<nav class="tabs" aria-label="Pages of this section"><ul>${tabs.map(([path, name]) => link(context, path, name, path === (page.tab ?? tabs[0]?.[0])))}</ul></nav>`}
        <div class="head"><h1>${title}</h1>${page.actions && html`<div class="actions">${page.actions}</div>`}</div>
        ${flash && refused === null && html`<p class="said" role="status">${flash}</p>`}
        ${context.user.is_suspended && SUSPENDED}
        ${refused && alert(refused)}
        ${content}
        <footer>${showsCountry && COUNTRY_SOURCE}<p>Times are in ${context.user.time_zone}
          (<a href="/dashboard/account">change</a>); days are UTC days. <a href="/docs">API documentation</a></p></footer>
      </main>`,
    ),
    refused?.retryAfter,
  );
  return said === null ? answer : afterFlash(answer);
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
      html`<main id="main" class="bare" tabindex="-1"><p class="brand">Doorplate</p>
      <h1>${title}</h1>${content}</main>`,
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
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/dashboard/assets/style.css">
<script defer src="/dashboard/assets/app.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
${body}
</body>
</html>
`;
