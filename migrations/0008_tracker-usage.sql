-- Up Migration
create table read.tracker_calls_hour (
  tracker_id uuid not null,
  hour timestamptz not null,
  source text not null,
  capture_requests bigint not null,
  api_requests bigint not null,
  completed_responses bigint not null,
  company_responses bigint not null,
  primary key (tracker_id, hour, source)
);
create index on read.tracker_calls_hour (hour);
comment on table read.tracker_calls_hour is 'Requests of pixels and calls of partners by tracker and UTC hour. Written by projection tracker-usage.';
comment on column read.tracker_calls_hour.source is 'The usage stream that counted them: one a process and day.';

create table read.tracker_hour (
  tracker_id uuid not null,
  hour timestamptz not null,
  sessions bigint not null,
  reveals bigint not null,
  primary key (tracker_id, hour)
);
create index on read.tracker_hour (hour);
comment on table read.tracker_hour is 'Sessions and reveals by tracker and the UTC hour they began in; outlives them. Written by projection tracker-usage.';
