-- What a key spends again and again, for the limit `repeatLimit` of its policy.
--
-- spend: the category, amount and payee that are equal: see repeat_name
-- ats: times of the newest spends, as many as the limit counts
-- until: from when on they no longer count
create table repeat_run (
  key_id text collate "C" not null references access_key,
  spend text not null,
  ats timestamptz[] not null,
  until timestamptz not null,
  primary key (key_id, spend)
);
create index repeat_run_until on repeat_run (key_id, until);

-- repeat: {count, seconds} of the key's policy; null: no limit. In `path` of each ancestor.
alter type spend_request add attribute repeat jsonb;
