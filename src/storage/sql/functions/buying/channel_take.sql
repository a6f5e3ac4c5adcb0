-- Raises what is signed on a channel to the voucher of a purchase, and takes the channel for it: base and price, never more than the
-- deposit, and while nothing else is presented.
--
-- Arguments: p_cumulative: amount of the voucher, which is already signed and has not left the process.
-- Returns false when the voucher must not leave the process: another was booked meanwhile, or the channel is taken, or is ending.
-- Locks: the channel.
create or replace function channel_take(p_channel text, p_purchase text, p_units bigint, p_cumulative bigint, p_at timestamptz)
returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  c channel;
begin
  select * into c from channel where id = p_channel for update;
  if c.status is distinct from 'open' or c.booked + p_units <> p_cumulative or p_cumulative > c.deposit
    or not channel_is_free(c.purchase_id, p_purchase, p_at)
  then
    return false;
  end if;
  update channel set purchase_id = p_purchase, signed = greatest(signed, p_cumulative), last_used_at = p_at, updated_at = p_at
  where id = p_channel;
  return true;
end $$;
