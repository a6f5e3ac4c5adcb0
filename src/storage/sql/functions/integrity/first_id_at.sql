-- The text that sorts before every id with a prefix that was created at a time or later, and after all earlier ones: the first ten
-- digits of a UUIDv7 in Crockford base32.
--
-- Locks: none.
create or replace function first_id_at(p_prefix text, p_at timestamptz) returns text language plpgsql immutable as $$
declare
  v_ms bigint := floor(extract(epoch from p_at) * 1000);
  v_text text := '';
begin
  for i in 1..10 loop
    v_text := substr('0123456789abcdefghjkmnpqrstvwxyz', (v_ms % 32)::int + 1, 1) || v_text;
    v_ms := v_ms / 32;
  end loop;
  return p_prefix || '_' || v_text;
end $$;
