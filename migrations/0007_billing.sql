-- Up Migration
create table read.reveal_unit (
  reveal_id uuid primary key,
  partner_id uuid not null,
  tracker_id uuid not null,
  key_id text,
  user_id text,
  completed_at timestamptz not null,
  units smallint not null,
  position bigint not null,
  ledger_number integer
);
create index on read.reveal_unit (key_id, completed_at);
create index on read.reveal_unit (tracker_id, completed_at);
create index on read.reveal_unit (partner_id, completed_at);
create index on read.reveal_unit (partner_id, position);
comment on table read.reveal_unit is 'Every completed reveal and its unit; outlives the receipt. Written by projection reveal-units.';
comment on column read.reveal_unit.key_id is 'Null: a user of the dashboard asked.';
comment on column read.reveal_unit.user_id is 'Null: an API key asked.';
comment on column read.reveal_unit.units is '1: the result was nonempty. Else 0.';
comment on column read.reveal_unit.position is 'Of its completion in the log.';
comment on column read.reveal_unit.ledger_number is 'Of its entry in the partner''s ledger; null until it has one.';
