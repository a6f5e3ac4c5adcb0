-- Books a purchase by voucher as paid, provisionally: its seller has delivered, or says that it was charged. What counts is what is
-- claimed at the channel's end. Other purchases whose vouchers say no more than is now booked were not charged, and end unpaid.
--
-- Arguments: p_delivered: what it has delivered, sealed, after p_attempts further paid requests; p_hash: hash of its body; null: nothing.
-- Verdicts: settled; already_settled (it has ended); stale (it is not the next voucher: nothing is booked). is_kept: the delivery is
--   kept, whatever the verdict; false if there was one: the first stays.
-- Locks: the purchase; the reservation; the account; the channel; the balances; other purchases of the channel that nobody has locked.
create or replace function channel_settle(
  p_purchase text, p_cumulative bigint, p_destination text, p_at timestamptz,
  p_delivered bytea default null, p_hash text default null, p_attempts int default 0, out verdict text, out is_kept boolean
) language plpgsql as $$
#variable_conflict use_column
declare
  p purchase;
  o record;
begin
  select * into p from purchase where id = p_purchase for update;
  is_kept := p_delivered is not null and p.delivered_at is null;
  if p.state <> 'signed' then
    verdict := 'already_settled';
  elsif p.cumulative <> p_cumulative then
    verdict := 'stale';
  else
    perform 1 from reservation where decision_id = p.decision_id for update;
    perform pg_advisory_xact_lock(hashtextextended(p.account_id, 0));
    update channel set booked = p_cumulative, last_used_at = p_at, updated_at = p_at,
      purchase_id = case when purchase_id <> p_purchase then purchase_id end
    where id = p.purse_id and booked + p.units = p_cumulative;
    verdict := case when found then 'settled' else 'stale' end;
  end if;
  if is_kept then
    update purchase set state = case verdict when 'settled' then 'settled' else state end,
      charged = case verdict when 'settled' then units else charged end,
      delivered_at = p_at, delivered = p_delivered, delivered_hash = p_hash, attempts = attempts + p_attempts, updated_at = p_at
    where id = p_purchase;
  elsif verdict = 'settled' then
    update purchase set state = 'settled', charged = units, updated_at = p_at where id = p_purchase;
  end if;
  if verdict <> 'settled' then
    return;
  end if;
  select s.verdict into verdict from spend_resolve(p.decision_id, 'settled', p_destination, p_at) s;
  for o in
    select u.id, u.decision_id from purchase u join channel c on c.id = u.purse_id
    where u.purse_id = p.purse_id and u.scheme = 'batch-settlement' and u.state = 'signed' and u.cumulative <= p_cumulative
      and u.id is distinct from c.purchase_id
    order by u.id for update of u skip locked
  loop
    update purchase set state = 'failed', failure_code = coalesce(failure_code, 'seller_failed'),
      failure = coalesce(failure, 'the seller did not take the voucher'), credential = null, updated_at = p_at
    where id = o.id;
    perform spend_resolve(o.decision_id, 'released', null, p_at);
  end loop;
end $$;
