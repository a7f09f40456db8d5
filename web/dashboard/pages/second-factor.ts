import { encodeQR } from 'qr';
import type { Reply } from '../../../http/contract/route.ts';
import { redirectAfterPost } from '../answers.ts';
import { type Refused, textOf, type Visit } from '../api.ts';
import { copyable, counted, field, form, type Html, html, notice, panel, proofField } from '../components.ts';
import { show } from '../layout.ts';
import { SECOND_FACTOR_PATH as PATH, type PageRoute } from '../routes.ts';

/** A secret for the user's app, which counts once a first code has proven it. */
interface ProposedSecret {
  readonly secret: string;
  readonly uri: string;
  /** Sealed for this login. */
  readonly proposal: string;
}

export interface SecondFactorDeps {
  readonly isSetUp: (userId: string) => Promise<boolean>;
  readonly countRecoveryCodes: (userId: string) => Promise<number>;
  readonly propose: (visit: Visit) => Promise<ProposedSecret>;
  /** Opens a proposal of this login again; null: it is none that can still be confirmed. */
  readonly reopen: (visit: Visit, proposal: string) => Promise<ProposedSecret | null>;
  /**
   * @returns the recovery codes; `stale`: the proposal is none of this login that can still be confirmed; `set`: there is a second
   *   factor already
   */
  readonly enable: (
    visit: Visit,
    proposal: string,
    code: string,
  ) => Promise<readonly string[] | 'wrong' | 'stale' | 'set'>;
  readonly disable: (visit: Visit) => Promise<void>;
  readonly renewRecoveryCodes: (visit: Visit) => Promise<readonly string[]>;
}

export const secondFactorPages = (deps: SecondFactorDeps): PageRoute[] => [
  { method: 'GET', path: PATH, beforeSecondFactor: true, handle: (visit) => page(deps, visit) },
  {
    method: 'POST',
    path: PATH,
    needs: 'read-only',
    needsProof: true,
    beforeSecondFactor: true,
    handle: (visit) => enable(deps, visit),
  },
  {
    method: 'POST',
    path: `${PATH}/recovery-codes`,
    needs: 'read-only',
    needsProof: true,
    handle: (visit) =>
      whereSetUp(deps, visit, async () =>
        codesPage(visit, 'New recovery codes', await deps.renewRecoveryCodes(visit)),
      ),
  },
  {
    method: 'POST',
    path: `${PATH}/disable`,
    needs: 'read-only',
    needsProof: true,
    handle: (visit) =>
      whereSetUp(deps, visit, async () => {
        await deps.disable(visit);
        return redirectAfterPost('/dashboard/account', 'second-factor-off');
      }),
  },
];

const whereSetUp = async (deps: SecondFactorDeps, visit: Visit, act: () => Promise<Reply>): Promise<Reply> =>
  (await deps.isSetUp(visit.user.user_id)) ? act() : redirectAfterPost(PATH);

const refusedWith = (status: number, code: string, message: string): Refused => ({
  ok: false,
  status,
  code,
  message,
});

async function page(deps: SecondFactorDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  return (await deps.isSetUp(visit.user.user_id))
    ? managePage(deps, visit, refused)
    : setUpPage(visit, await deps.propose(visit), refused);
}

function setUpPage(visit: Visit, { secret, uri, proposal }: ProposedSecret, refused: Refused): Reply {
  return show(visit, {
    title: 'Set up a second factor',
    section: 'Settings',
    tab: '/dashboard/account',
    refused,
    content: html`${visit.user.needs_second_factor && notice(html`<p>The owners of your team require a second factor. Set it up to go on.</p>`)}
    <ol class="steps">
      <li><p>Open an authenticator app on your phone: Google Authenticator, Microsoft Authenticator or 1Password, for example.</p></li>
      <li><p>Scan this code with it, or type the secret in.</p>${qrCode(uri)}
        ${copyable('Secret', secret.replaceAll(/(.{4})(?=.)/g, '$1 '))}</li>
      <li><p>Enter the six digits that the app shows, and your password.</p>${form(
        visit,
        PATH,
        html`<input type="hidden" name="proposal" value="${proposal}">
        ${codeField('Code')}
        ${proofField(visit)}<button>Turn on the second factor</button>`,
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

async function enable(deps: SecondFactorDeps, visit: Visit): Promise<Reply> {
  const proposal = textOf(visit, 'proposal');
  const outcome = await deps.enable(visit, proposal, textOf(visit, 'code'));
  switch (outcome) {
    case 'wrong': {
      const again = await deps.reopen(visit, proposal);
      const refused = refusedWith(
        400,
        'wrong_code',
        'The code is wrong. Check that the time of your phone is set automatically, and enter the one that the app shows now.',
      );
      return again === null ? page(deps, visit, refused) : setUpPage(visit, again, refused);
    }
    case 'stale':
      return page(
        deps,
        visit,
        refusedWith(
          400,
          'stale_secret',
          'This secret is not valid any more: it is for ten minutes, and for one set-up. Scan the new code.',
        ),
      );
    case 'set':
      return page(
        deps,
        visit,
        refusedWith(409, 'second_factor_set', 'You have set up a second factor already.'),
      );
    default:
      return codesPage(visit, 'The second factor is on', outcome);
  }
}

const codesPage = (visit: Visit, title: string, codes: readonly string[]): Reply =>
  show(visit, {
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

async function managePage(deps: SecondFactorDeps, visit: Visit, refused: Refused): Promise<Reply> {
  const left = await deps.countRecoveryCodes(visit.user.user_id);
  return show(visit, {
    title: 'Second factor',
    section: 'Settings',
    tab: '/dashboard/account',
    refused,
    content: html`<p>Each login asks for a code of your app.</p>
    <div class="columns">
    ${panel(
      'Recovery codes',
      html`<p>You have ${counted(left, 'unused recovery code')}. New ones replace these.</p>
      ${form(
        visit,
        `${PATH}/recovery-codes`,
        html`${proofField(visit, 'proof', PROOF)}<button class="quiet">Make new recovery codes</button>`,
      )}`,
    )}
    ${panel(
      'Turn off',
      html`<p>Logins ask for your password alone. To use another phone, turn it off, then set it up anew.</p>
      ${form(
        visit,
        `${PATH}/disable`,
        html`${proofField(visit, 'proof-off', PROOF)}<button class="danger">Turn off the second factor</button>`,
      )}`,
    )}
    </div>
    <p><a href="/dashboard/account">Your account</a></p>`,
  });
}
