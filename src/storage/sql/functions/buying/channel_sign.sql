-- Keeps the voucher of a purchase before it leaves the process. A purchase whose voucher the seller did not take, because others were
-- booked meanwhile, gets one for the amount after them: together they are never signed for more than was bought.
--
-- Returns true if it may leave.
-- Locks: the purchase; the channel.
create or replace function channel_sign(
  p_purchase text, p_cumulative bigint, p_since_block bigint, p_credential bytea, p_hash text, p_at timestamptz
) returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  p purchase;
begin
  select * into p from purchase where id = p_purchase for update;
  if p.state not in ('reserved', 'signed') or p.is_canceled or not key_is_active(p.key_id)
    or exists (select from account a where a.id = p.account_id and a.status = 'locked')
    -- Its money is the channel's.
    or not exists (select from reservation r where r.decision_id = p.decision_id and r.status = 'reserved'
      and r.held = p.account_id || ':purse.' || p.purse_id || ':held')
    or not channel_take(p.purse_id, p_purchase, p.units, p_cumulative, p_at)
  then
    return false;
  end if;
  update purchase set state = 'signed', cumulative = p_cumulative, since_block = p_since_block, credential = p_credential,
    credential_hash = p_hash, updated_at = p_at
  where id = p_purchase;
  return true;
end $$;
