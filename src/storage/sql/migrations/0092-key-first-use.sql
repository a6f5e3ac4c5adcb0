-- When a key made its first call: its owner waits for it after connecting an agent. Null: none since this is kept.
alter table access_key add column first_used_at timestamptz;
