-- Up Migration
-- What an enrichment had failed at before a reservation joined it is another partner's.
alter table read.reservation add column attempts_before integer not null default 0;
comment on column read.reservation.attempts_before is 'Failed attempts of the enrichment from before this reservation joined it.';
