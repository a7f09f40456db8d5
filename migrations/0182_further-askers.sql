-- Up Migration
-- Work for which several partners wait is due in the turn of each, so that the backlog of the first delays no other.
create table read.enrichment_asker (
  ip text not null,
  asked_by uuid not null,
  next_attempt_at timestamptz not null,
  primary key (ip, asked_by)
);
create index on read.enrichment_asker (asked_by, next_attempt_at);
comment on table read.enrichment_asker is 'Further askers of enrichments under way. Written by projection lookups.';
comment on column read.enrichment_asker.asked_by is
  'A partner that asked for the address after another; of a reveal a keyed pseudonym of its partner.';
comment on column read.enrichment_asker.next_attempt_at is 'When the next attempt is due in the turn of this asker.';
