import { isoTime } from '../../../domain/kernel/time.ts';
import { asUuid } from '../../../http/contract/parameters.ts';
import type { Reply } from '../../../http/contract/route.ts';
import {
  findMember,
  findPresentOrFormerMember,
  type InvitationRow,
  isSecondFactorRequired,
  listInvitations,
  listMembers,
  listOwners,
  type MemberRow,
} from '../../../queries/partners/team.ts';
import { runsThisReleaseAlone } from '../../../queries/processes.ts';
import { type TeamChanges, teamRefusal } from '../../../write-api/partners/team.ts';
import { redirectAfterPost } from '../answers.ts';
import {
  commandOf,
  errorAnswer,
  isOwner,
  type PageContext,
  plainText,
  type Refused,
  ROLES,
  type Role,
  textOf,
} from '../api.ts';
import * as ui from '../components.ts';
import { type Content, type Html, html } from '../components.ts';
import { type Page, show } from '../layout.ts';
import { action, type Done, type Found, resourceRoutes } from '../resource.ts';
import { get, type PageRoute, post } from '../routes.ts';

const PATH = '/dashboard/team';
const MEMBER = `${PATH}/:user_id`;
/** From then on the page offers a search. */
const FEW = 10;
const MEMBERS_SHOWN = 200;

export const teamPages = (changes: TeamChanges): PageRoute[] => [
  get(PATH, (page) => list(page)),
  get(`${PATH}/invite`, (page) => invitePage(page), { needs: 'owner' }),
  post(`${PATH}/invitations`, 'owner', (page) => invite(changes, page), { needsProof: true }),
  post(`${PATH}/withdraw`, 'owner', (page) => withdraw(changes, page)),
  post(`${PATH}/second-factor`, 'owner', (page) => setRequirement(changes, page), { needsProof: true }),
  ...resourceRoutes<MemberRow>({
    path: MEMBER,
    needs: 'owner',
    find,
    missing: (page, why) => list(page, why),
    show: (page, member, refused) => show(page, { ...memberView(page, member), refused }),
    actions: [
      action('role', 'owner', (page) => changeRole(changes, page), 'role-changed', {
        needsProof: true,
        leadsTo: PATH,
      }),
      action('remove', 'owner', (page) => remove(changes, page), 'user-removed', {
        needsProof: true,
        ask: askRemove,
        leadsTo: PATH,
        refusedOn: 'question',
      }),
    ],
  }),
  get(`${MEMBER}/reset-password`, (page) => askReset(page), { needs: 'owner' }),
  post(`${MEMBER}/reset-password`, 'owner', (page) => reset(changes, page), { needsProof: true }),
];

const MISSING = errorAnswer(404, 'user_not_found', 'There is no such user in the team.');

async function find({ reads, user, request }: PageContext): Promise<Found<MemberRow>> {
  const id = asUuid(request.params.user_id);
  const member = id === null ? null : await findMember(reads.db, user.partner_id, id);
  return member === null ? MISSING : { ok: true, body: member };
}

/** Changes a user of the reader's own team. */
async function withMember<T>(
  { reads: { db }, user, request }: PageContext,
  change: (member: Parameters<TeamChanges['remove']>[0]) => Promise<T>,
  findIt: typeof findPresentOrFormerMember = findMember,
): Promise<T | ReturnType<typeof teamRefusal>> {
  const id = asUuid(request.params.user_id);
  const member = id === null ? null : await findIt(db, user.partner_id, id);
  if (member === null) return teamRefusal('user_not_found');
  const owners = await listOwners(db, user.partner_id);
  const { user_id, partner_id, role } = member;
  return change({ user_id, partner_id, role, owners: owners.map((owner) => owner.user_id) });
}

const ROLE_TEXTS = [
  ['owner', 'Owner: everything, with team and keys'],
  ['member', 'Member: everything but team and keys'],
  ['read-only', 'Read-only: sees everything but secrets, changes nothing'],
] as const;

const roleSelect = (chosen: Role) => ui.select('Role', 'role', ROLE_TEXTS, chosen);

const roleIn = (page: PageContext): Role | null =>
  ROLES.find((role) => role === textOf(page, 'role')) ?? null;

const NO_ROLE = errorAnswer(400, 'invalid_role', 'Choose a role of the list.');

async function loadTeam({ reads: { db }, user, request, query }: PageContext) {
  const id = user.partner_id;
  const name = plainText(query.get('q')).slice(0, 100);
  const [members, invitations, owners, isRequired] = await Promise.all([
    listMembers(db, id, { name, limit: MEMBERS_SHOWN + 1 }),
    listInvitations(db, id, isoTime(request.receivedAt)),
    listOwners(db, id),
    isSecondFactorRequired(db, id),
  ]);
  return {
    members: members.slice(0, MEMBERS_SHOWN),
    hasMore: members.length > MEMBERS_SHOWN,
    isSearched: name !== '',
    invitations,
    owners: owners.map((owner) => owner.name),
    isRequired,
  };
}
type Team = Awaited<ReturnType<typeof loadTeam>>;

const list = async (page: PageContext, refused: Refused = null): Promise<Reply> =>
  show(page, { ...teamView(page, await loadTeam(page)), refused });

function teamView(page: PageContext, team: Team): Page {
  const { members, hasMore, isSearched, invitations, owners, isRequired } = team;
  const mayManage = isOwner(page);
  return {
    title: 'Team',
    section: 'Settings',
    tab: PATH,
    pickers: (members.length > FEW || isSearched) && ui.searchForm(page),
    actions: mayManage && html`<a class="button" href="${PATH}/invite">Invite a colleague</a>`,
    content: html`${!mayManage && ui.notice(html`<p>Owners change the team: ${owners.join(', ')}.</p>`)}
    ${ui.tableOr(
      ui.noMatch(PATH),
      ui.counted(members.length, 'user'),
      ['User', 'Role', 'Second factor', 'Last active', 'Last login'],
      members.map((member) => [
        mayManage ? html`<a href="${PATH}/${member.user_id}">${member.name}</a>` : member.name,
        html`${member.role}${member.user_id === page.user.user_id && html` ${ui.badge('you', 'off')}`}`,
        member.second_factor
          ? ui.badge('on', 'good')
          : isRequired || member.second_factor_invited
            ? ui.badge('required, not set up yet', 'bad')
            : ui.badge('off', 'off'),
        page.ago(member.used_at),
        page.time(member.logged_in_at),
      ]),
      { minor: [4], isWhole: !hasMore },
    )}
    ${hasMore && html`<p>There are more users than these: search by name.</p>`}
    ${invitations.length > 0 && invitationTable(page, invitations)}
    ${mayManage && ui.panel('Second factor for all', requirement(page, isRequired))}`,
  };
}

async function invitePage(page: PageContext, refused: Refused = null): Promise<Reply> {
  const mayRequire = await runsThisReleaseAlone(page.reads.pool);
  const isChecked = textOf(page, 'second_factor') === 'required';
  return show(page, {
    title: 'Invite a colleague',
    section: 'Settings',
    tab: PATH,
    up: [PATH, 'Team'],
    refused,
    content: html`<section class="panel">
      <p>You get a link to hand over. It works once, within 72 hours: your colleague chooses a user name and a password.
      Doorplate sends no mail.</p>${ui.form(
        page,
        `${PATH}/invitations`,
        html`${roleSelect(refused === null ? 'member' : (roleIn(page) ?? 'member'))}
        ${ui.field('For whom', 'note', { value: textOf(page, 'note'), maxlength: 100, hint: 'A note for you and the other owners, “Ada, sales” for example.' })}
        ${
          mayRequire &&
          ui.checkbox('Require a second factor of this colleague', 'second_factor', 'required', isChecked)
        }
        ${ui.proofField(page)}
        <button>Make the link</button>`,
      )}</section>`,
  });
}

function invitationTable(page: PageContext, invitations: Team['invitations']): Content {
  const heads = ['For', 'Role', 'Made by', 'Expires'];
  const rows = invitations.map(({ note, role, second_factor, made_by, expires_at }) => [
    note === '' ? 'No note' : note,
    `${role}${second_factor ? ', with a second factor' : ''}`,
    made_by ?? 'an operator',
    page.time(expires_at),
  ]);
  const caption = ui.counted(invitations.length, 'open invitation');
  if (!isOwner(page)) return ui.table(caption, heads, rows);
  const forms = invitations.map((invitation) => withdrawForm(page, invitation));
  return ui.table(
    caption,
    [...heads, 'Withdraw'],
    rows.map((cells, nth) => [...cells, forms[nth]]),
  );
}

const withdrawForm = (page: PageContext, { invitation_id, role, note }: InvitationRow): Html =>
  ui.form(
    page,
    `${PATH}/withdraw`,
    html`<input type="hidden" name="invitation_id" value="${invitation_id}">
              <button class="quiet" aria-label="Withdraw the invitation for ${note === '' ? role : note}">Withdraw</button>`,
  );

const requirement = (page: PageContext, isRequired: boolean): Content =>
  isRequired
    ? html`<p>${ui.badge('required', 'good')} A user without a second factor sets one up before anything else.</p>
      ${requirementForm(page, 'no', 'Stop requiring it')}`
    : html`<p>Everybody may have one. If you require it, users without one set it up on their next page, before anything else:
      you too. Users who lose phone and recovery codes need an owner, or the operator, to get in again.</p>
      ${requirementForm(page, 'yes', 'Require a second factor')}`;

const requirementForm = (page: PageContext, required: 'yes' | 'no', button: string): Html =>
  ui.form(
    page,
    `${PATH}/second-factor`,
    html`<input type="hidden" name="required" value="${required}">${ui.proofField(page, 'proof-required', 'Your password, for this setting')}<button class="quiet">${button}</button>`,
  );

const EARLIER_RELEASE = errorAnswer(
  409,
  'earlier_release',
  'The service is being upgraded. Invite without the second factor, or a little later.',
);

async function invite(changes: TeamChanges, page: PageContext): Promise<Reply> {
  const role = roleIn(page);
  if (role === null) return invitePage(page, NO_ROLE);
  const second_factor = textOf(page, 'second_factor') === 'required';
  if (second_factor && !(await runsThisReleaseAlone(page.reads.pool)))
    return invitePage(page, EARLIER_RELEASE);
  const invitation = { role, note: textOf(page, 'note'), second_factor };
  const made = await changes.invite(page.user.partner_id, invitation, commandOf(page));
  if (!made.ok) return invitePage(page, made);
  return show(page, {
    title: 'The invitation is ready',
    section: 'Settings',
    tab: PATH,
    status: 201,
    content: html`<p>Hand this link to your colleague, by a way that you trust: the first person who opens it joins the team as
      ${role}${second_factor && ', with a second factor'}. It works once, within 72 hours.</p>
      ${ui.secretOnce('Link', `${page.publicUrl}/dashboard/invitations/${made.token}`)}
      <p><a class="button" href="${PATH}">I have copied it</a></p>`,
  });
}

async function withdraw(changes: TeamChanges, page: PageContext): Promise<Reply> {
  const id = textOf(page, 'invitation_id');
  const withdrawn = await changes.withdraw(page.user.partner_id, id, commandOf(page));
  return withdrawn.ok ? redirectAfterPost(PATH, 'invitation-withdrawn') : list(page, withdrawn);
}

async function setRequirement(changes: TeamChanges, page: PageContext): Promise<Reply> {
  const isRequired = textOf(page, 'required') === 'yes';
  const changed = await changes.requireSecondFactor(page.user.partner_id, isRequired, commandOf(page));
  if (!changed.ok) return list(page, changed);
  return redirectAfterPost(PATH, isRequired ? 'second-factor-required' : 'second-factor-optional');
}

function memberView(page: PageContext, member: MemberRow): Page {
  const path = `${PATH}/${member.user_id}`;
  const isSelf = member.user_id === page.user.user_id;
  return {
    title: member.name,
    section: 'Settings',
    tab: PATH,
    up: [PATH, 'Team'],
    content: html`${ui.facts([
      ['Role', member.role],
      ['Second factor', member.second_factor ? 'on' : 'off'],
      ['Last active', page.ago(member.used_at)],
      ['Last login', page.time(member.logged_in_at)],
      ['Joined', page.time(member.created_at)],
    ])}
    <div class="columns">
    ${ui.panel(
      'Role',
      html`<p>It holds from the next page on.${isSelf && ' This is your own.'}</p>
      ${ui.form(page, `${path}/role`, html`${roleSelect(member.role)}${ui.proofField(page)}<button class="quiet">Change the role</button>`)}`,
    )}
    ${ui.panel(
      'Access',
      html`${
        isSelf
          ? html`<p>Your own password and second factor are in <a href="/dashboard/account">your account</a>.</p>`
          : html`<p>For a colleague who has lost the password or the phone.</p>
          <p><a class="button quiet" href="${path}/reset-password">Reset the password…</a></p>`
      }
      <p><a class="button danger" href="${path}/remove">Remove from the team…</a></p>`,
    )}
    </div>`,
  };
}

async function changeRole(changes: TeamChanges, page: PageContext): Promise<Done> {
  const role = roleIn(page);
  if (role === null) return NO_ROLE;
  return withMember(page, (member) => changes.changeRole(member, role, commandOf(page)));
}

/** A removal that was cut short is repeated, so former members count. */
const remove = (changes: TeamChanges, page: PageContext): Promise<Done> =>
  withMember(page, (member) => changes.remove(member, commandOf(page)), findPresentOrFormerMember);

function askRemove(page: PageContext, { name, user_id }: MemberRow) {
  return {
    title: `Remove ${name} from the team?`,
    section: 'Settings',
    tab: PATH,
    text: html`<p>All logins of ${name} end at once${user_id === page.user.user_id && ', this one of yours'}.
      The user name cannot be used again. Keys, websites and webhooks stay.</p>`,
    button: 'Remove the user',
  } as const;
}

async function askReset(page: PageContext, refused: Refused = null): Promise<Reply> {
  const found = await find(page);
  if (!found.ok) return list(page, found);
  const member = found.body;
  const path = `${PATH}/${member.user_id}`;
  return show(page, {
    title: `Reset the password of ${member.name}?`,
    section: 'Settings',
    tab: PATH,
    refused,
    content: html`<section class="confirm"><p>All logins of ${member.name} end at once. You get a first password to hand over, which
      ${member.name} has to change with the first login.</p>${ui.form(
        page,
        `${path}/reset-password`,
        html`${
          member.second_factor &&
          ui.checkbox(
            'Turn off the second factor too, because the phone is lost',
            'second_factor',
            'off',
            false,
          )
        }${ui.proofField(page)}<button class="danger">Reset the password</button> <a class="button quiet" href="${path}">Cancel</a>`,
      )}</section>`,
  });
}

/** A stolen login must not change what only the password or a code may change in the account. */
const OWN_ACCESS = errorAnswer(
  409,
  'own_access',
  'Change your own password and second factor in your account.',
);

async function reset(changes: TeamChanges, page: PageContext): Promise<Reply> {
  const found = await find(page);
  if (!found.ok) return list(page, found);
  const { user_id, name } = found.body;
  if (user_id === page.user.user_id) return askReset(page, OWN_ACCESS);
  const withFactor = textOf(page, 'second_factor') === 'off';
  const made = await withMember(page, (member) => changes.resetPassword(member, withFactor, commandOf(page)));
  if (!made.ok) return askReset(page, made);
  return show(page, {
    title: `A first password for ${name}`,
    section: 'Settings',
    tab: PATH,
    status: 201,
    content: html`${ui.secretOnce('First password', made.password)}
      <p><a class="button" href="${PATH}">I have copied it</a></p>`,
  });
}
