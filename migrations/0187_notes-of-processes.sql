-- Up Migration
comment on table work.kept_out is 'For whom a shared rate was full lately. Written by platform/kept-out-exchange.ts.';
comment on column work.kept_out.asker is 'A partner, its reveals, or the visitors of a process; and the process that has shared it.';
