-- Up Migration
create table read.domain (
  domain_id uuid primary key,
  hostname text not null,
  tracker_id uuid not null,
  partner_id uuid not null,
  status text not null,
  created_at timestamptz not null,
  activated_at timestamptz,
  last_error text
);
create unique index on read.domain (hostname);
create index on read.domain (tracker_id, created_at, domain_id);
comment on table read.domain is
  'Host names that trackers have now; a name that was given up has no row. Written by projection domains.';
comment on column read.domain.status is 'pending, active (it collects for its tracker) or failed.';
comment on column read.domain.activated_at is 'When it last became active; null once its activation has begun anew.';
comment on column read.domain.last_error is
  'Why it does not point at the service, as of the last look that told something new; null: it does, or nobody has looked.';

create table work.domain_look (
  domain_id uuid primary key,
  hostname text not null,
  looks integer not null default 0,
  looked_at timestamptz,
  due_at timestamptz
);
create index on work.domain_look (due_at);
comment on table work.domain_look is
  'When to look where a custom domain points. Made by processor keep-domains; the rest by the looks themselves, most of which have no event.';
comment on column work.domain_look.looks is 'How many have ended; the claim of the next one has the number after it.';
comment on column work.domain_look.due_at is 'null: its activation has failed, and nobody looks.';
