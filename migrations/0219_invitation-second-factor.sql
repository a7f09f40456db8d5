alter table read.invitation add column second_factor boolean not null default false;
comment on column read.invitation.second_factor is 'Whether the invited person has to set up a second factor, whatever the team requires.';
