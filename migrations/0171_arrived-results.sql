create table work.arrived_result (
  address_digest text primary key
);
comment on table work.arrived_result is
  'Addresses whose results have arrived while very many reveals waited, of which the next runs mark the rest. Written by processor complete-reveals.';
comment on column work.arrived_result.address_digest is 'As in work.awaited_result.';
