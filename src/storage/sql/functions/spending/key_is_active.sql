-- Returns true while neither a key nor an ancestor of it was stopped or revoked; also for no key at all.
--
-- Locks: none.
create or replace function key_is_active(p_key text) returns boolean language plpgsql stable as $$
begin
  return p_key is null or exists (
    select from access_key k where k.id = p_key and k.status = 'active'
      and (k.path = '{}' or not exists (select from access_key a where a.id = any (k.path) and a.status <> 'active')));
end $$;
