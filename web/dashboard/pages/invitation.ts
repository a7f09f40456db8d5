import type { ApiRequest, Reply } from '../../../http/contract/route.ts';
import { RATES } from '../../../processors/partners/login-limits.ts';
import { invitationState } from '../../../queries/partners/team.ts';
import { teamRefusal } from '../../../write-api/partners/team.ts';
import { loginCookie, redirectAfterPost } from '../answers.ts';
import { errorAnswer, type Refused } from '../api.ts';
import { alert, field, html } from '../components.ts';
import { showBare } from '../layout.ts';
import { newPasswordFields, problemWithPassword } from '../passwords.ts';
import { formOf, type OpenRoute } from '../routes.ts';
import { browserIn, type LoginServices } from '../services.ts';
import { endEarlier } from './login.ts';

const PATH = '/dashboard/invitations/:token';
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

export const invitationPages = (services: LoginServices): OpenRoute[] => [
  {
    method: 'GET',
    path: PATH,
    handle: async (request) => {
      const invitation = await find(services, request);
      return invitation?.state === 'open' ? joinPage(request, invitation) : closedPage(invitation);
    },
  },
  { method: 'POST', path: PATH, handle: (request) => join(services, request) },
];

const tokenOf = ({ params }: ApiRequest): string => params.token ?? '';

/** The invitation of the link, with what has become of it; null: there is none. */
async function find({ findInvitation }: LoginServices, request: ApiRequest) {
  const token = tokenOf(request);
  const found = TOKEN.test(token) ? await findInvitation(token) : null;
  return found && { ...found, state: invitationState(found, request.receivedAt) };
}
type Invitation = NonNullable<Awaited<ReturnType<typeof find>>>;

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

async function join(services: LoginServices, request: ApiRequest): Promise<Reply> {
  const invitation = await find(services, request);
  if (invitation?.state !== 'open') return closedPage(invitation);
  const again = (...why: Parameters<typeof errorAnswer>) =>
    joinPage(request, invitation, errorAnswer(...why));
  const wait = await services.limits.take(RATES.formsOfInvitation(invitation.invitation_id));
  if (wait !== null)
    return again(429, 'too_many_forms', `Too many forms in a minute. Wait ${wait} s, then try again.`, wait);
  const form = formOf(request);
  const name = (form.get('name') ?? '').trim();
  // A longer name makes the check of the password slow, and is refused all the same.
  const problem = name.length > 200 ? null : problemWithPassword(form, name);
  if (problem !== null) return again(400, 'password_refused', problem);
  const { partner_id, invitation_id, role } = invitation;
  const password = form.get('password') ?? '';
  const accepted = await services.join(
    { partner_id, invitation_id, role, name, password, browser: browserIn(request) },
    { correlationId: request.id, causationId: request.id, at: request.receivedAt },
  );
  if (accepted.ok) {
    await endEarlier(services, request);
    return redirectAfterPost('/dashboard?said=logged-in', 'joined', loginCookie(accepted.value));
  }
  const now = await find(services, request);
  // Of two browsers with the same link one was first.
  if (now?.state !== 'open' || accepted.refusal === 'invitation_used')
    return closedPage({ ...invitation, state: now === null || now.state === 'open' ? 'used' : now.state });
  return joinPage(request, invitation, teamRefusal(accepted.refusal));
}
