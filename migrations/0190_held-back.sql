alter table work.claim add column held_by text;
comment on column work.claim.held_by is
  'The provider that held the attempt back, which is due again as soon as that provider can be asked; null: the claim is held by its lease.';
