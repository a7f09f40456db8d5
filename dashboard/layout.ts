import type { Reply } from '../http/contract/route.ts';
import { htmlAnswer } from './answers.ts';
import { alert, form } from './components.ts';
import { flashMessage } from './flash-message.ts';
import { type Content, type Html, html } from './html.ts';
import type { Refused, Visit } from './visit.ts';

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

export type Section = (typeof SECTIONS)[number][1];

export interface Page {
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

export const show = (visit: Visit, page: Page): Reply => {
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
};

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
