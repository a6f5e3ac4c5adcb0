-- The keys that a key's spends are counted on: its ancestors, root first, and itself.
--
-- Locks: none.
create or replace function key_path(p_key text) returns text[] language plpgsql stable as $$
begin
  return coalesce((select k.path || k.id from access_key k where k.id = p_key), array[p_key]);
end $$;
