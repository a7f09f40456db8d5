alter table read.webhook_delivery add column newest_secret_only boolean not null default false, add column signed_by text;
comment on column read.webhook_delivery.newest_secret_only is 'Whether the newest secret alone signs it: the test of a rotation, which counts for no circuit breaker.';
comment on column read.webhook_delivery.signed_by is 'The secrets that signed the last attempt: newest, or newest_and_previous; null: none was made, or release 0.2.0 made it.';
