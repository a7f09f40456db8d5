import type { Reply } from '../../../http/contract/route.ts';
import type { InvitationRow, MemberRow } from '../../../queries/partners/team.ts';
import { redirectAfterPost } from '../answers.ts';
import {
  type ErrorAnswer,
  isOwner,
  plainText,
  type Refused,
  ROLES,
  type Role,
  textOf,
  type Visit,
} from '../api.ts';
import {
  badge,
  type Content,
  checkbox,
  counted,
  facts,
  field,
  form,
  html,
  noMatch,
  notice,
  panel,
  proofField,
  searchForm,
  secretOnce,
  select,
  table,
  tableOr,
} from '../components.ts';
import { ask, show } from '../layout.ts';
import type { PageRoute } from '../routes.ts';

interface TeamOverview {
  /** In the order of their creation. */
  readonly members: readonly MemberRow[];
  /** Whether there are more than these. */
  readonly more: boolean;
  readonly invitations: readonly InvitationRow[];
  readonly owners: readonly string[];
  readonly second_factor_required: boolean;
}

type Done = Promise<{ readonly ok: true } | ErrorAnswer>;

export interface TeamDeps {
  /** `name`: a part of the users' names; '' for all. */
  readonly overview: (visit: Visit, name: string) => Promise<TeamOverview>;
  readonly find: (visit: Visit, userId: string) => Promise<MemberRow | null>;
  /** @returns the link to hand over, which cannot be shown again */
  readonly invite: (
    visit: Visit,
    invitation: { readonly role: Role; readonly note: string },
  ) => Promise<{ readonly ok: true; readonly link: string } | ErrorAnswer>;
  readonly withdraw: (visit: Visit, invitationId: string) => Done;
  readonly changeRole: (visit: Visit, userId: string, role: Role) => Done;
  readonly remove: (visit: Visit, userId: string) => Done;
  /** @returns a password that the user must change first */
  readonly resetPassword: (
    visit: Visit,
    userId: string,
    secondFactor: boolean,
  ) => Promise<{ readonly ok: true; readonly password: string } | ErrorAnswer>;
  readonly requireSecondFactor: (visit: Visit, required: boolean) => Done;
}

const PATH = '/dashboard/team';
/** From then on the page offers a search. */
const FEW = 10;

export const teamPages = (deps: TeamDeps): PageRoute[] => [
  { method: 'GET', path: PATH, handle: (visit) => list(deps, visit) },
  {
    method: 'POST',
    path: `${PATH}/invitations`,
    needs: 'owner',
    needsProof: true,
    handle: (visit) => invite(deps, visit),
  },
  { method: 'POST', path: `${PATH}/withdraw`, needs: 'owner', handle: (visit) => withdraw(deps, visit) },
  {
    method: 'POST',
    path: `${PATH}/second-factor`,
    needs: 'owner',
    needsProof: true,
    handle: (visit) => setRequirement(deps, visit),
  },
  { method: 'GET', path: `${PATH}/:user_id`, needs: 'owner', handle: (visit) => one(deps, visit) },
  {
    method: 'POST',
    path: `${PATH}/:user_id/role`,
    needs: 'owner',
    needsProof: true,
    handle: (visit) => changeRole(deps, visit),
  },
  {
    method: 'GET',
    path: `${PATH}/:user_id/remove`,
    needs: 'owner',
    handle: (visit) => askRemove(deps, visit),
  },
  {
    method: 'POST',
    path: `${PATH}/:user_id/remove`,
    needs: 'owner',
    needsProof: true,
    handle: (visit) => remove(deps, visit),
  },
  {
    method: 'GET',
    path: `${PATH}/:user_id/reset-password`,
    needs: 'owner',
    handle: (visit) => askReset(deps, visit),
  },
  {
    method: 'POST',
    path: `${PATH}/:user_id/reset-password`,
    needs: 'owner',
    needsProof: true,
    handle: (visit) => reset(deps, visit),
  },
];

const ROLE_TEXTS = [
  ['owner', 'Owner: everything, with team and keys'],
  ['member', 'Member: everything but team and keys'],
  ['read-only', 'Read-only: sees everything but secrets, changes nothing'],
] as const;

const roleSelect = (chosen: Role) => select('Role', 'role', ROLE_TEXTS, chosen);

const roleIn = (visit: Visit): Role | null => ROLES.find((role) => role === textOf(visit, 'role')) ?? null;

const NO_ROLE: ErrorAnswer = {
  ok: false,
  status: 400,
  code: 'invalid_role',
  message: 'Choose a role of the list.',
};

async function list(deps: TeamDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const name = plainText(visit.query.get('q')).slice(0, 100);
  const team = await deps.overview(visit, name);
  const mayManage = isOwner(visit);
  return show(visit, {
    title: 'Team',
    section: 'Settings',
    tab: PATH,
    refused,
    actions: mayManage && html`<a class="button" href="#invite">Invite a colleague</a>`,
    content: html`${!mayManage && notice(html`<p>Owners change the team: ${team.owners.join(', ')}.</p>`)}
    ${(team.members.length > FEW || name !== '') && searchForm(visit)}
    ${tableOr(
      noMatch(PATH),
      counted(team.members.length, 'user'),
      ['User', 'Role', 'Second factor', 'Last active', 'Last login'],
      team.members.map((member) => [
        mayManage ? html`<a href="${PATH}/${member.user_id}">${member.name}</a>` : member.name,
        html`${member.role}${member.user_id === visit.user.user_id && html` ${badge('you', 'off')}`}`,
        member.second_factor
          ? badge('on', 'good')
          : badge('off', team.second_factor_required ? 'bad' : 'off'),
        visit.ago(member.used_at),
        visit.time(member.logged_in_at),
      ]),
    )}
    ${team.more && html`<p>There are more users than these: search by name.</p>`}
    ${team.invitations.length > 0 && invitations(visit, team)}
    ${
      mayManage &&
      html`<section class="panel" id="invite"><h2>Invite a colleague</h2>
      <p>You get a link to hand over. It works once, within 72 hours: your colleague chooses a user name and a password.
      Doorplate sends no mail.</p>${form(
        visit,
        `${PATH}/invitations`,
        html`${roleSelect(refused === null ? 'member' : (roleIn(visit) ?? 'member'))}
        ${field('For whom', 'note', { value: textOf(visit, 'note'), maxlength: 100, hint: 'A note for you and the other owners, “Ada, sales” for example.' })}
        ${proofField(visit)}
        <button>Make the link</button>`,
      )}</section>`
    }
    ${mayManage && panel('Second factor for all', requirement(visit, team))}`,
  });
}

function invitations(visit: Visit, { invitations }: TeamOverview): Content {
  return table(
    counted(invitations.length, 'open invitation'),
    ['For', 'Role', 'Made by', 'Expires', ...(isOwner(visit) ? ['Withdraw'] : [])],
    invitations.map(({ invitation_id, note, role, made_by, expires_at }) => [
      note === '' ? 'No note' : note,
      role,
      made_by ?? 'an operator',
      visit.time(expires_at),
      ...(isOwner(visit)
        ? [
            form(
              visit,
              `${PATH}/withdraw`,
              html`<input type="hidden" name="invitation_id" value="${invitation_id}">
              <button class="quiet" aria-label="Withdraw the invitation for ${note === '' ? role : note}">Withdraw</button>`,
            ),
          ]
        : []),
    ]),
  );
}

const requirement = (visit: Visit, { second_factor_required }: TeamOverview): Content =>
  second_factor_required
    ? html`<p>${badge('required', 'good')} A user without a second factor sets one up before anything else.</p>
      ${form(
        visit,
        `${PATH}/second-factor`,
        html`<input type="hidden" name="required" value="no">${proofField(visit, 'proof-required', 'Your password, for this setting')}<button class="quiet">Stop requiring it</button>`,
      )}`
    : html`<p>Everybody may have one. If you require it, whoever has none sets one up with the next page, before anything else:
      you too. Whoever loses phone and recovery codes needs an owner, or the operator, to get in again.</p>
      ${form(
        visit,
        `${PATH}/second-factor`,
        html`<input type="hidden" name="required" value="yes">${proofField(visit, 'proof-required', 'Your password, for this setting')}<button class="quiet">Require a second factor</button>`,
      )}`;

async function invite(deps: TeamDeps, visit: Visit): Promise<Reply> {
  const role = roleIn(visit);
  if (role === null) return list(deps, visit, NO_ROLE);
  const made = await deps.invite(visit, { role, note: textOf(visit, 'note') });
  if (!made.ok) return list(deps, visit, made);
  return show(visit, {
    title: 'The invitation is ready',
    section: 'Settings',
    tab: PATH,
    status: 201,
    content: html`<p>Hand this link to your colleague, by a way that you trust: whoever opens it first joins the team as
      ${role}. It works once, within 72 hours.</p>
      ${secretOnce('Link', made.link)}
      <p><a class="button" href="${PATH}">I have copied it</a></p>`,
  });
}

async function withdraw(deps: TeamDeps, visit: Visit): Promise<Reply> {
  const withdrawn = await deps.withdraw(visit, textOf(visit, 'invitation_id'));
  return withdrawn.ok ? redirectAfterPost(PATH, 'invitation-withdrawn') : list(deps, visit, withdrawn);
}

async function setRequirement(deps: TeamDeps, visit: Visit): Promise<Reply> {
  const isRequired = textOf(visit, 'required') === 'yes';
  const changed = await deps.requireSecondFactor(visit, isRequired);
  if (!changed.ok) return list(deps, visit, changed);
  return redirectAfterPost(PATH, isRequired ? 'second-factor-required' : 'second-factor-optional');
}

const idOf = ({ request }: Visit): string => request.params.user_id ?? '';

const missing = (deps: TeamDeps, visit: Visit): Promise<Reply> =>
  list(deps, visit, {
    ok: false,
    status: 404,
    code: 'user_not_found',
    message: 'There is no such user in the team.',
  });

async function one(deps: TeamDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const member = await deps.find(visit, idOf(visit));
  if (member === null) return missing(deps, visit);
  const path = `${PATH}/${member.user_id}`;
  const isSelf = member.user_id === visit.user.user_id;
  return show(visit, {
    title: member.name,
    section: 'Settings',
    tab: PATH,
    refused,
    content: html`${facts([
      ['Role', member.role],
      ['Second factor', member.second_factor ? 'on' : 'off'],
      ['Last active', visit.ago(member.used_at)],
      ['Last login', visit.time(member.logged_in_at)],
      ['Joined', visit.time(member.created_at)],
    ])}
    <div class="columns">
    ${panel(
      'Role',
      html`<p>It holds from the next page on.${isSelf && ' This is your own.'}</p>
      ${form(visit, `${path}/role`, html`${roleSelect(member.role)}${proofField(visit)}<button class="quiet">Change the role</button>`)}`,
    )}
    ${panel(
      'Access',
      html`${
        isSelf
          ? html`<p>Your own password and second factor are in <a href="/dashboard/account">your account</a>.</p>`
          : html`<p>For a colleague who has lost the password or the phone.</p>
          <p><a class="button quiet" href="${path}/reset-password">Reset the password…</a></p>`
      }
      <p><a class="button danger" href="${path}/remove">Remove from the team…</a></p>`,
    )}
    </div>
    <p><a href="${PATH}">The whole team</a></p>`,
  });
}

async function changeRole(deps: TeamDeps, visit: Visit): Promise<Reply> {
  const role = roleIn(visit);
  if (role === null) return one(deps, visit, NO_ROLE);
  const changed = await deps.changeRole(visit, idOf(visit), role);
  return changed.ok ? redirectAfterPost(PATH, 'role-changed') : one(deps, visit, changed);
}

async function askRemove(deps: TeamDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const member = await deps.find(visit, idOf(visit));
  if (member === null) return missing(deps, visit);
  return ask(visit, {
    title: `Remove ${member.name} from the team?`,
    section: 'Settings',
    tab: PATH,
    refused,
    text: html`<p>All logins of ${member.name} end at once${member.user_id === visit.user.user_id && ', this one of yours'}.
      The user name cannot be used again. Keys, websites and webhooks stay.</p>`,
    action: `${PATH}/${member.user_id}/remove`,
    button: 'Remove the user',
    asksForProof: true,
    back: `${PATH}/${member.user_id}`,
  });
}

async function remove(deps: TeamDeps, visit: Visit): Promise<Reply> {
  const removed = await deps.remove(visit, idOf(visit));
  return removed.ok ? redirectAfterPost(PATH, 'user-removed') : askRemove(deps, visit, removed);
}

async function askReset(deps: TeamDeps, visit: Visit, refused: Refused = null): Promise<Reply> {
  const member = await deps.find(visit, idOf(visit));
  if (member === null) return missing(deps, visit);
  const path = `${PATH}/${member.user_id}`;
  return show(visit, {
    title: `Reset the password of ${member.name}?`,
    section: 'Settings',
    tab: PATH,
    refused,
    content: html`<section class="confirm"><p>All logins of ${member.name} end at once. You get a first password to hand over, which
      ${member.name} has to change with the first login.</p>${form(
        visit,
        `${path}/reset-password`,
        html`${
          member.second_factor &&
          checkbox('Turn off the second factor too, because the phone is lost', 'second_factor', 'off', false)
        }${proofField(visit)}<button class="danger">Reset the password</button> <a class="button quiet" href="${path}">Cancel</a>`,
      )}</section>`,
  });
}

/** A stolen login must not change what only the password or a code may change in the account. */
const OWN_ACCESS: Refused = {
  ok: false,
  status: 409,
  code: 'own_access',
  message: 'Change your own password and second factor in your account.',
};

async function reset(deps: TeamDeps, visit: Visit): Promise<Reply> {
  const member = await deps.find(visit, idOf(visit));
  if (member === null) return missing(deps, visit);
  if (member.user_id === visit.user.user_id) return askReset(deps, visit, OWN_ACCESS);
  const made = await deps.resetPassword(visit, member.user_id, textOf(visit, 'second_factor') === 'off');
  if (!made.ok) return askReset(deps, visit, made);
  return show(visit, {
    title: `A first password for ${member.name}`,
    section: 'Settings',
    tab: PATH,
    status: 201,
    content: html`${secretOnce('First password', made.password)}
      <p><a class="button" href="${PATH}">I have copied it</a></p>`,
  });
}
