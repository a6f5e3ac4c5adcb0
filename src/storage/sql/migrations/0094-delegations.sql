-- Keys that another key has given a part of its budget to.
--
-- path: the key's ancestors, root first; empty for a root. It never changes.
-- earmark_micros: what its ancestors set aside for it, in millionths of a US dollar; null: nothing
-- task: what its spends are labeled with
alter table access_key
  add column path text[] collate "C" not null default '{}',
  add column earmark_micros bigint check (earmark_micros > 0),
  add column task text,
  add constraint access_key_depth check (cardinality(path) <= 4);
create index access_key_below on access_key using gin (path) where path <> '{}';

-- The keys whose budgets set an earmark aside: from the parent up to the nearest ancestor that has one itself, which contains it.
create table earmark (
  holder_id text collate "C" not null references access_key,
  key_id text collate "C" not null references access_key,
  primary key (holder_id, key_id)
);

-- path: {key, version, budgets, cooldown_seconds} of each ancestor of the key, root first, as its caller has read them; null: none
alter type spend_request add attribute path jsonb;
