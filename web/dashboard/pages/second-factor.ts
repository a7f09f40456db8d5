import { encodeQR } from 'qr';
import type { Reply } from '../../../http/contract/route.ts';
import { RATES } from '../../../processors/partners/login-limits.ts';
import type { ProposedSecret } from '../../../processors/partners/second-factor.ts';
import { redirectAfterPost } from '../answers.ts';
import { commandOf, errorAnswer, type PageContext, type Refused, textOf } from '../api.ts';
import { copyable, counted, field, form, type Html, html, notice, panel, proofField } from '../components.ts';
import { show } from '../layout.ts';
import { get, SECOND_FACTOR_PATH as PATH, type PageRoute, post } from '../routes.ts';
import type { LoginServices } from '../services.ts';

export const secondFactorPages = (services: LoginServices): PageRoute[] => [
  get(PATH, (page) => factorPage(services, page), { beforeSecondFactor: true }),
  post(PATH, 'read-only', (page) => enable(services, page), { needsProof: true, beforeSecondFactor: true }),
  post(
    `${PATH}/recovery-codes`,
    'read-only',
    (page) =>
      whereSetUp(services, page, async () => {
        const codes = await services.factorChanges.renewRecoveryCodes(page.user, commandOf(page));
        return codesPage(page, 'New recovery codes', codes);
      }),
    { needsProof: true },
  ),
  post(
    `${PATH}/disable`,
    'read-only',
    (page) =>
      whereSetUp(services, page, async () => {
        await services.factorChanges.disable(page.user, commandOf(page));
        return redirectAfterPost('/dashboard/account', 'second-factor-off');
      }),
    { needsProof: true },
  ),
];

const whereSetUp = async (
  { factors }: LoginServices,
  page: PageContext,
  act: () => Promise<Reply>,
): Promise<Reply> => ((await factors.isSetUp(page.user.user_id)) ? act() : redirectAfterPost(PATH));

async function factorPage(
  { factors }: LoginServices,
  page: PageContext,
  refused: Refused = null,
): Promise<Reply> {
  const { user, csrf } = page;
  return (await factors.isSetUp(user.user_id))
    ? managePage(page, await factors.countRecoveryCodes(user.user_id), refused)
    : setUpPage(page, await factors.propose(user.user_id, user.name, csrf), refused);
}

function setUpPage(page: PageContext, { secret, uri, proposal }: ProposedSecret, refused: Refused): Reply {
  return show(page, {
    title: 'Set up a second factor',
    section: 'Settings',
    tab: '/dashboard/account',
    up: ['/dashboard/account', 'Your account'],
    refused,
    content: html`${page.user.needs_second_factor && notice(html`<p>The owners of your team require a second factor. Set it up to go on.</p>`)}
    <ol class="steps">
      <li><p>Open an authenticator app on your phone: Google Authenticator, Microsoft Authenticator or 1Password, for example.</p></li>
      <li><p>Scan this code with it, or type the secret in.</p>${qrCode(uri)}
        ${copyable('Secret', secret.replaceAll(/(.{4})(?=.)/g, '$1 '))}</li>
      <li><p>Enter the six digits that the app shows, and your password.</p>${form(
        page,
        PATH,
        html`<input type="hidden" name="proposal" value="${proposal}">
        ${codeField('Code')}
        ${proofField(page)}<button>Turn on the second factor</button>`,
      )}</li>
    </ol>
    <p class="soft">Then you get ten recovery codes for the day on which you do not have your phone. Your other logins end.</p>`,
  });
}

const codeField = (label: string): Html =>
  field(label, 'code', { required: true, autocomplete: 'one-time-code', maxlength: 100 });

/** Modules of the margin that readers need around a code. */
const MARGIN = 4;
/** Pixels of a module, so that a camera tells one from the next however long the user's name makes the code. */
const MODULE_PIXELS = 4;
const MIN_WIDTH = 200;

/** Dark on light in every colour scheme, because not all readers take the reverse. */
function qrCode(text: string): Html {
  const rows = encodeQR(text, 'raw', { border: MARGIN });
  const size = rows.length;
  const width = Math.max(MIN_WIDTH, size * MODULE_PIXELS);
  const dark = rows.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])));
  // Never narrower, on a narrow screen neither: it is scrolled there.
  return html`<div class="wide"><svg class="qr" viewBox="0 0 ${size} ${size}" width="${width}" height="${width}" role="img" shape-rendering="crispEdges"
    aria-label="QR code with the secret that stands below"><rect width="${size}" height="${size}" fill="#fff"/>
    <path fill="#000" d="${dark.join('')}"/></svg></div>`;
}

const REFUSED = {
  wrong: errorAnswer(
    400,
    'wrong_code',
    'The code is wrong. Check that the time of your phone is set automatically, and enter the one that the app shows now.',
  ),
  stale: errorAnswer(
    400,
    'stale_secret',
    'This secret is not valid any more: it is for ten minutes, and for one set-up. Scan the new code.',
  ),
  set: errorAnswer(409, 'second_factor_set', 'You have set up a second factor already.'),
} as const;

async function enable(services: LoginServices, page: PageContext): Promise<Reply> {
  const { factors, factorChanges, limits } = services;
  const { user, csrf, token } = page;
  const proposal = textOf(page, 'proposal');
  const given = { proposal, about: csrf, code: textOf(page, 'code'), token };
  const outcome = await factorChanges.enable(user, given, commandOf(page));
  if (typeof outcome !== 'string') return codesPage(page, 'The second factor is on', outcome);
  if (outcome !== 'wrong') return factorPage(services, page, REFUSED[outcome]);
  await limits.take(RATES.proofsOfUser(user.user_id));
  const again = await factors.reopen(user.user_id, user.name, csrf, proposal);
  return again === null ? factorPage(services, page, REFUSED.wrong) : setUpPage(page, again, REFUSED.wrong);
}

const codesPage = (page: PageContext, title: string, codes: readonly string[]): Reply =>
  show(page, {
    title,
    section: 'Settings',
    tab: '/dashboard/account',
    status: 201,
    content: html`<section class="secret"><h2>Your recovery codes</h2>
      <p><strong>They are shown once.</strong> Print them, or keep them with your passwords. Each of them works once in place of a
      code of the app. Earlier ones do not work any more.</p>
      ${copyable('Recovery codes', codes.join('\n'))}</section>
      <p><a class="button" href="/dashboard/account">I have kept them</a></p>`,
  });

const PROOF = 'Your password, or a code of the app';

function managePage(page: PageContext, left: number, refused: Refused): Reply {
  return show(page, {
    title: 'Second factor',
    section: 'Settings',
    tab: '/dashboard/account',
    up: ['/dashboard/account', 'Your account'],
    refused,
    content: html`<p>Each login asks for a code of your app.</p>
    <div class="columns">
    ${panel(
      'Recovery codes',
      html`<p>You have ${counted(left, 'unused recovery code')}. New ones replace these.</p>
      ${form(
        page,
        `${PATH}/recovery-codes`,
        html`${proofField(page, 'proof', PROOF)}<button class="quiet">Make new recovery codes</button>`,
      )}`,
    )}
    ${panel(
      'Turn off',
      html`<p>Logins ask for your password alone. To use another phone, turn it off, then set it up again.</p>
      ${form(
        page,
        `${PATH}/disable`,
        html`${proofField(page, 'proof-off', PROOF)}<button class="danger">Turn off the second factor</button>`,
      )}`,
    )}
    </div>`,
  });
}
