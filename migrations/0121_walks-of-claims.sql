-- A claim reads a bounded number of an endpoint's due deliveries; the next one goes on behind them.
alter table work.webhook_slot
  add column walked_at timestamptz,
  add column walked_id uuid,
  add column walk_since timestamptz;
comment on column work.webhook_slot.walked_at is
  'next_attempt_at of the last due delivery that claims have walked past, because none up to it could be claimed; null: they begin at the first.';
comment on column work.webhook_slot.walked_id is 'That delivery''s id.';
comment on column work.webhook_slot.walk_since is 'When that walk began; after ten seconds it begins again at the first.';
