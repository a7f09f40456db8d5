import type { ApiRequest, Reply } from '../../../http/contract/route.ts';
import { loginCookie, redirectAfterPost } from '../answers.ts';
import type { ErrorAnswer, Refused, Role } from '../api.ts';
import { alert, field, html } from '../components.ts';
import { showBare } from '../layout.ts';
import { newPasswordFields, problemWithPassword, type WeaknessOf } from '../passwords.ts';
import { formOf, type OpenRoute } from '../routes.ts';
import { endEarlier } from './login.ts';

interface Invitation {
  readonly invitation_id: string;
  readonly partner_id: string;
  readonly partner_name: string;
  readonly role: Role;
  readonly state: 'open' | 'used' | 'withdrawn' | 'expired' | 'suspended';
}

export interface InvitationDeps {
  /** The invitation of a link with this token; null: there is none. */
  readonly find: (token: string, request: ApiRequest) => Promise<Invitation | null>;
  /** Counts a form for an invitation. @returns seconds until the next; null: this one counts */
  readonly admitForm: (invitationId: string) => Promise<number | null>;
  /** Makes the user. @returns the login's token */
  readonly accept: (
    invitation: Invitation,
    user: { readonly name: string; readonly password: string },
    request: ApiRequest,
  ) => Promise<{ readonly ok: true; readonly token: string } | ErrorAnswer>;
  readonly weakness: WeaknessOf;
  readonly logOut: (token: string) => Promise<void>;
}

const PATH = '/dashboard/invitations/:token';

export const invitationPages = (deps: InvitationDeps): OpenRoute[] => [
  {
    method: 'GET',
    path: PATH,
    handle: async (request) => {
      const invitation = await deps.find(tokenOf(request), request);
      return invitation?.state === 'open' ? joinPage(request, invitation) : closedPage(invitation);
    },
  },
  { method: 'POST', path: PATH, handle: (request) => join(deps, request) },
];

const tokenOf = ({ params }: ApiRequest): string => params.token ?? '';

function joinPage(request: ApiRequest, { partner_name, role }: Invitation, refused: Refused = null): Reply {
  const name = formOf(request).get('name') ?? '';
  return showBare(
    `Join ${partner_name}`,
    html`<p>You are invited to the dashboard of ${partner_name}, with the role ${role}. Choose how you log in.</p>
    ${refused && alert(refused)}
    <form method="post" action="/dashboard/invitations/${tokenOf(request)}">
      ${field('User name', 'name', { value: name, required: true, autocomplete: 'username', maxlength: 100 })}
      ${newPasswordFields('Password')}
      <button>Join and log in</button>
    </form>`,
    refused?.status ?? 200,
    refused?.retryAfter,
  );
}

const ASK_AGAIN = 'Ask an owner of the team for a new one.';

const CLOSED = {
  used: [
    'This invitation has been used',
    `If it was you, log in. If not, tell an owner of the team. ${ASK_AGAIN}`,
  ],
  withdrawn: ['This invitation was withdrawn', ASK_AGAIN],
  expired: ['This invitation has expired', `An invitation lives for 72 hours. ${ASK_AGAIN}`],
  suspended: [
    'This account is suspended',
    'While the account is suspended, nobody can join it. Only the operator of this service can resume it.',
  ],
} as const;

/** `invitation` null: the link leads to none. */
function closedPage(invitation: Invitation | null): Reply {
  if (invitation === null || invitation.state === 'open') {
    return showBare(
      'There is no such invitation',
      html`<p>Check that you have copied the whole link. ${ASK_AGAIN}</p>`,
      404,
    );
  }
  const [title, text] = CLOSED[invitation.state];
  return showBare(
    title,
    html`<p>${text}</p><p><a class="button" href="/dashboard/login">Log in</a></p>`,
    invitation.state === 'suspended' ? 403 : 410,
  );
}

async function join(deps: InvitationDeps, request: ApiRequest): Promise<Reply> {
  const invitation = await deps.find(tokenOf(request), request);
  if (invitation?.state !== 'open') return closedPage(invitation);
  const again = (status: number, code: string, message: string, retryAfter?: number) =>
    joinPage(request, invitation, {
      ok: false,
      status,
      code,
      message,
      ...(retryAfter === undefined ? {} : { retryAfter }),
    });
  const wait = await deps.admitForm(invitation.invitation_id);
  if (wait !== null)
    return again(429, 'too_many_forms', `Too many forms in a minute. Wait ${wait} s, then try again.`, wait);
  const form = formOf(request);
  const name = (form.get('name') ?? '').trim();
  // A longer name makes the check of the password slow, and is refused all the same.
  const problem = name.length > 200 ? null : problemWithPassword(form, name, deps.weakness);
  if (problem !== null) return again(400, 'password_refused', problem);
  const accepted = await deps.accept(invitation, { name, password: form.get('password') ?? '' }, request);
  if (accepted.ok) {
    await endEarlier(deps.logOut, request);
    return redirectAfterPost('/dashboard', 'joined', loginCookie(accepted.token));
  }
  const now = await deps.find(tokenOf(request), request);
  // Of two browsers with the same link one was first.
  if (now?.state !== 'open' || accepted.code === 'invitation_used')
    return closedPage({ ...invitation, state: now === null || now.state === 'open' ? 'used' : now.state });
  return joinPage(request, invitation, accepted);
}
