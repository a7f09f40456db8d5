-- Attempts take the work of partners in turn: a backlog of one partner delays no other partner.
alter table read.enrichment_work add column asked_by uuid not null default '00000000-0000-0000-0000-000000000000';
comment on column read.enrichment_work.asked_by is 'The partner that asked first; of a reveal''s work, and of work from before this column: zeros.';
create index enrichment_work_asked_by on read.enrichment_work (asked_by, next_attempt_at);
