-- A process that finds a rate full for a partner has the others keep to their parts, whichever process they come to.
create unlogged table work.kept_out (
  rate text not null,
  asker text not null,
  kept_out_at timestamptz not null,
  primary key (rate, asker)
);
comment on table work.kept_out is 'For whom a shared rate was full lately. Written by platform/kept-out.ts.';
comment on column work.kept_out.rate is 'Names the rate.';
comment on column work.kept_out.asker is 'A partner, or its reveals.';
comment on column work.kept_out.kept_out_at is 'When it was full last.';
