-- Several partners may claim a host name; only an active claim holds it.
drop index read.domain_hostname_idx;
create unique index domain_active_hostname on read.domain (hostname) where status = 'active';
create index domain_hostname on read.domain (hostname);
create index domain_partner on read.domain (partner_id);
comment on table read.domain is
  'Claims of host names by trackers; one that was given up has no row. Written by projection domains.';

create table read.domain_owner (
  hostname text not null,
  partner_id uuid not null,
  primary key (hostname, partner_id)
);
comment on table read.domain_owner is
  'Partners for which a host name was ever active: another partner has to show by a TXT record that it is its own. Written by projection domains.';
insert into read.domain_owner (hostname, partner_id)
  select hostname, partner_id from read.domain where activated_at is not null;
