-- A proposed secret of a second factor counts for one set-up.
alter table work.user_profile add column second_factor_setups integer not null default 0;
comment on column work.user_profile.second_factor_setups is
  'How often the user has set up a second factor. A proposed secret is bound to the number, so that it works once.';
