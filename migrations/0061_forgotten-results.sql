-- A saved result is forgotten 400 days after it was last asked for.
create table work.lookup_use (
  ip text primary key,
  asked_on date not null
);
create index on work.lookup_use (asked_on);
comment on table work.lookup_use is 'When each saved result was last asked for, by a lookup or a reveal.';
comment on column work.lookup_use.asked_on is 'The UTC day.';

create table read.forgotten_lookup (
  stream text primary key,
  last_revision integer not null,
  last_position bigint not null
);
comment on table read.forgotten_lookup is 'Streams of results that were forgotten, until they are deleted. Written by projection lookups.';
comment on column read.forgotten_lookup.stream is 'The name holds a keyed digest of the address.';
comment on column read.forgotten_lookup.last_revision is 'Of its last event.';
comment on column read.forgotten_lookup.last_position is 'The place of its last event in the log: it is deleted once everybody has passed that.';

-- Ended reservations go after 90 days.
create index on read.reservation (ended_at) where ended_at is not null;
