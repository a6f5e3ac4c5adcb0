-- Takes a channel for a purchase, before its voucher is signed or presented again.
--
-- Verdicts: present: its voucher is signed, and is the next; sign: it is to be signed for cumulative; deposit: the contract does not hold
--   that much; busy: another purchase is presented; ending: the channel takes no purchases; over: the purchase has ended.
-- Locks: the channel.
create or replace function channel_claim(p_purchase text, p_at timestamptz, out verdict text, out cumulative bigint) language plpgsql as $$
#variable_conflict use_column
declare
  p purchase;
  c channel;
begin
  select c2.* into c from channel c2 join purchase o on o.purse_id = c2.id where o.id = p_purchase for update of c2;
  -- Read after the lock: a purchase that was presented meanwhile may have ended this one.
  select * into p from purchase o where o.id = p_purchase;
  cumulative := c.booked + p.units;
  if p.state not in ('reserved', 'signed') then
    verdict := 'over';
  elsif c.status <> 'open' then
    verdict := 'ending';
  elsif not channel_is_free(c.purchase_id, p_purchase, p_at) then
    verdict := 'busy';
  else
    update channel set purchase_id = p_purchase, updated_at = p_at where id = c.id;
    verdict := case when p.cumulative = cumulative then 'present' when cumulative > c.deposit then 'deposit' else 'sign' end;
  end if;
end $$;
