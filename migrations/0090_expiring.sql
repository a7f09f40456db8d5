-- A sweep deletes streams and then writes down the ids of what it deleted. What it is about to delete stands here until
-- both are done, so that a crash in between loses no id, whatever is rebuilt meanwhile (processors/expiry.ts).
create table work.expiring (
  kind text not null,
  id text not null,
  partner_id uuid not null,
  expires_at timestamptz not null,
  primary key (kind, id)
);
comment on table work.expiring is
  'Sessions, receipts and bodies whose streams a sweep is deleting. A row that stays is from a sweep that was cut off; the next one ends its work. Written by the sweeps of processors/expiry.ts.';
comment on column work.expiring.kind is 'sessions, reveals or payloads.';
