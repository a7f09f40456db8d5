-- Up Migration
comment on column work.kept_out.asker is 'A partner, its reveals, or a count of captures (first, beyond, squares, short; of a tracker); and the process that has shared it.';
