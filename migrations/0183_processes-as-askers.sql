-- Up Migration
comment on column work.kept_out.asker is 'A partner, its reveals, or a process that speaks for its visitors.';
