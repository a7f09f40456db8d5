-- Up Migration
alter table work.kept_out add column wanted real;
comment on column work.kept_out.wanted is 'How much of the rate the asker wants; null: it is not known.';
