-- A new id of an event: a TypeID, that is a UUIDv7 in Crockford base32. Random bits are the server's.
--
-- Locks: none.
create or replace function event_id(p_at timestamptz) returns text language plpgsql as $$
declare
  v_bits bit(130);
  v_text text := 'evt_';
begin
  v_bits := B'00' || ('x' || lpad(to_hex(floor(extract(epoch from p_at) * 1000)::bigint), 12, '0') || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14))::bit(128);
  for i in 0..25 loop
    v_text := v_text || substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(v_bits from i * 5 + 1 for 5)::bit(5)::int, 1);
  end loop;
  return v_text;
end $$;
