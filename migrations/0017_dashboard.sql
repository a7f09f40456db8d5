-- Up Migration
create table read.user_account (
  user_id uuid primary key,
  partner_id uuid not null,
  name text not null,
  created_at timestamptz not null,
  removed_at timestamptz
);
create index on read.user_account (partner_id);
comment on table read.user_account is 'Users of the dashboard, by the id that their name makes. Written by projection partners.';
comment on column read.user_account.removed_at is 'From then on the user logs in no more; the name is not given again.';

create table work.user_password (
  user_id uuid primary key,
  hash text not null,
  is_first boolean not null,
  set_at timestamptz not null
);
comment on table work.user_password is 'What users of the dashboard log in with. No event has it: a rebuild brings none of it back.';
comment on column work.user_password.hash is 'argon2id, as a PHC string.';
comment on column work.user_password.is_first is 'Given by an operator: its user must change it before anything else.';

create table work.login (
  digest bytea primary key,
  user_id uuid not null,
  began_at timestamptz not null,
  used_at timestamptz not null
);
create index on work.login (user_id);
comment on table work.login is 'Who is logged in to the dashboard.';
comment on column work.login.digest is 'SHA-256 of the token in the cookie.';
comment on column work.login.used_at is 'Of the last request, give or take a minute.';

create table work.key_use (
  key_id text primary key,
  used_at timestamptz not null
);
comment on table work.key_use is 'When each API key was last seen on a request, give or take some seconds.';

create table work.audit_verdict (
  partner_id uuid primary key,
  began_at timestamptz not null,
  ended_at timestamptz,
  report json
);
comment on table work.audit_verdict is 'What the last audit of a partner''s ledger found that was asked for in the dashboard.';
comment on column work.audit_verdict.ended_at is 'Null: it runs, or its process has ended.';
comment on column work.audit_verdict.report is 'As doorplate audit billing prints it; null where it came to no end.';
