-- Domain checks are taken by turns of partners. A row that an older version adds meanwhile counts as a partner of its own.
alter table work.domain_look add column partner_id uuid;
update work.domain_look look set partner_id = d.partner_id from read.domain d where d.domain_id = look.domain_id;
comment on column work.domain_look.partner_id is 'Whose name it is: a partner has at most two checks under way.';
