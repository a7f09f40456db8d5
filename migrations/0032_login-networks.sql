-- Networks from which a user has logged in: wrong passwords from elsewhere do not lock the user out there.
create table work.login_network (
  user_id uuid not null,
  network text not null,
  used_at timestamptz not null,
  primary key (user_id, network)
);
comment on table work.login_network is 'Networks of logins that succeeded, for 90 days. Written by the login.';
comment on column work.login_network.network is 'A keyed digest of the IPv4 address or IPv6 /64.';
