import type { Reply } from '../../http/contract/route.ts';
import { htmlAnswer } from './answers.ts';
import type { Refused, Visit } from './api.ts';
import { alert, type Content, confirmation, form, type Html, html, type Question } from './components.ts';

/** The message after a redirect, chosen by name, so that a link cannot put text into a page. */
const DONE: Readonly<Record<string, string>> = {
  'logged-out': 'You are logged out.',
  'password-changed': 'Your password is changed. Other logins of yours have ended.',
  'key-updated': 'The limits are changed. Every process has them within a second.',
  'key-revoked': 'The key is revoked. Nothing more is answered to it.',
  'tracker-created': 'The tracker is created. Put its snippet on your pages.',
  'tracker-changed': 'The tracker is changed. Visits are judged by its websites as they stand here.',
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

export const flashMessage = (flash: string | null): string | null =>
  flash !== null && Object.hasOwn(DONE, flash) ? (DONE[flash] ?? null) : null;

const SECTIONS = [
  ['/dashboard', 'Overview'],
  ['/dashboard/sessions', 'Sessions'],
  ['/dashboard/trackers', 'Trackers'],
  ['/dashboard/domains', 'Domains'],
  ['/dashboard/keys', 'Keys'],
  ['/dashboard/webhooks', 'Webhooks'],
  ['/dashboard/billing', 'Billing'],
  ['/dashboard/account', 'Account'],
] as const;

type Section = (typeof SECTIONS)[number][1];

interface Page {
  readonly title: string;
  readonly section: Section;
  readonly content: Content;
  readonly refused?: Refused;
  /** It shows a visitor's country, whose source must be named. */
  readonly showsCountry?: boolean;
  readonly status?: number;
}

const COUNTRY_SOURCE = html`<p>Visitor countries:
  <a href="https://db-ip.com" rel="noreferrer">IP Geolocation by DB-IP</a>, CC BY 4.0.</p>`;

export function show(visit: Visit, page: Page): Reply {
  const { title, section, content, refused = null, showsCountry = false } = page;
  const status = page.status ?? refused?.status ?? 200;
  const flash = flashMessage(visit.query.get('said'));
  return htmlAnswer(
    status,
    page_(
      title,
      html`<header class="top">
        <a class="brand" href="/dashboard">Doorplate</a>
        <nav aria-label="Sections"><ul>${SECTIONS.map(([path, name]) => link(path, name, name === section))}</ul></nav>
        ${form(
          visit,
          '/dashboard/logout',
          html`<span class="who">${visit.user.name} · ${visit.user.partner_name}</span>
          <button class="quiet">Log out</button>`,
          'user',
        )}
      </header>
      <main id="main" tabindex="-1">
        <h1>${title}</h1>
        ${flash && refused === null && html`<p class="said" role="status">${flash}</p>`}
        ${refused && alert(refused)}
        ${content}
      </main>
      <footer>${showsCountry && COUNTRY_SOURCE}<p>All times are UTC; your own stand beside them.
        <a href="/docs">API documentation</a></p></footer>`,
    ),
    refused?.retryAfter,
  );
}

/** A page that asks before a change. */
export const ask = (
  visit: Visit,
  { title, section, refused = null, ...question }: Omit<Page, 'content'> & Question,
): Reply => show(visit, { title, section, refused, content: confirmation(visit, question) });

const link = (path: string, name: string, here: boolean): Html =>
  html`<li><a href="${path}"${here && html` aria-current="page"`}>${name}</a></li>`;

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
