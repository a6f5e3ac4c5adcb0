-- Returns true while no other purchase of a channel is presented to its seller.
--
-- Arguments: p_holder: the purchase that was presented last; null: none was.
-- Locks: none; the caller has locked the channel.
create or replace function channel_is_free(p_holder text, p_purchase text, p_at timestamptz) returns boolean language plpgsql stable as $$
begin
  return p_holder is null or p_holder = p_purchase or not exists (
    select from purchase o where o.id = p_holder and o.state in ('reserved', 'signed') and o.busy_until > p_at);
end $$;
