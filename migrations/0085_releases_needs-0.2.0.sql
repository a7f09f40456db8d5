-- Which release a process runs: a migration that an older one cannot run beside waits for its end (migrations/README.md).
alter table work.process add column release text;
comment on column work.process.release is 'Of the program that it runs; null: one before 0.2.0.';
