-- Up Migration
comment on column analytics.deliveries.error is 'Why the last attempt failed: an error of docs/webhooks.md; null: it did not, or there was none.';
