-- Up Migration
comment on table work.kept_out is 'What askers want of a shared rate: those that were refused lately, and how many captures each process has. Written by platform/kept-out-exchange.ts.';
comment on column work.kept_out.asker is 'A partner, its reveals, or a count of captures (first, beyond, rejected; of a tracker); and the process that has shared it.';
comment on column work.kept_out.kept_out_at is 'When it was noted last.';
