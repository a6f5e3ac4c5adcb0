-- After DATA_KEY was rotated: the key that hashes and derived keys come from, sealed under the present DATA_KEY.
alter table deployment drop constraint deployment_name_check;
alter table deployment add constraint deployment_name_check
  check (name in ('data_key', 'chain_id', 'chain_owner', 'root_key'));
