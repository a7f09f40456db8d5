-- Names of deleted streams are forgotten some time after the deletion (docs/adr/0017). Without a default the rows stay as
-- they are; those that were deleted before get their time from the job that forgets them.
alter table eventlog.stream add column expired_at timestamptz;
comment on column eventlog.stream.expired_at is 'When the stream was deleted; null: it was not, or before this column was there.';
comment on table eventlog.stream is 'The streams there are, and those that were deleted: their names are refused until they are forgotten.';
