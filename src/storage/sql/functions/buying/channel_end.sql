-- Books the end of a channel, once: what its seller has claimed is paid, whatever either side said before. Claimed beyond what is booked
-- are vouchers that were presented and never answered; booked beyond what was claimed is the owner's again.
--
-- Arguments: p_claimed: what was claimed in a final block in which nothing is left in the channel.
-- Verdicts: closed; closed_short (more was claimed than was ever reserved: missing of it is in no booking); none (it was closed before).
-- Locks: open purchases of the channel; their reservations; the account; the channel; the balances.
create or replace function channel_end(
  p_channel text, p_claimed bigint, p_at timestamptz, out verdict text, out missing bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  c channel;
  o record;
  v_excess bigint;
  v_taken bigint;
  v_free text;
begin
  perform 1 from purchase u where u.purse_id = p_channel and u.scheme = 'batch-settlement' and u.state in ('reserved', 'signed')
  order by u.id for update;
  perform 1 from reservation r join purchase u on u.decision_id = r.decision_id
  where u.purse_id = p_channel and u.scheme = 'batch-settlement' and u.state in ('reserved', 'signed')
  order by r.decision_id for update of r;
  select account_id into c.account_id from channel where id = p_channel;
  perform pg_advisory_xact_lock(hashtextextended(c.account_id, 0));
  select * into c from channel where id = p_channel for update;
  missing := 0;
  if c.status is null or c.status not in ('closing', 'exiting') then
    verdict := 'none';
    return;
  end if;
  verdict := 'closed';
  v_excess := greatest(p_claimed - c.booked, 0);
  for o in
    select u.id, u.decision_id, u.units from purchase u
    where u.purse_id = p_channel and u.scheme = 'batch-settlement' and u.state = 'signed'
    order by u.cumulative = p_claimed desc, u.cumulative, u.id
  loop
    v_taken := least(v_excess, o.units);
    v_excess := v_excess - v_taken;
    update purchase set state = case when v_taken > 0 then 'settled' else 'failed' end, charged = nullif(v_taken, 0),
      failure_code = coalesce(failure_code, 'seller_failed'),
      failure = coalesce(failure, case when v_taken = 0 then 'the seller did not take the voucher' end),
      credential = case when v_taken > 0 then credential end, updated_at = p_at
    where id = o.id;
    if v_taken = o.units then
      perform spend_resolve(o.decision_id, 'settled', 'external:' || c.chain, p_at);
    else
      if v_taken > 0 then
        perform spend_take(o.decision_id, o.decision_id || ':settle', v_taken, 'external:' || c.chain, p_at);
      end if;
      perform spend_resolve(o.decision_id, 'released', null, p_at);
    end if;
  end loop;
  v_free := c.account_id || ':purse.' || p_channel || ':available';
  if v_excess > 0 then
    select least(coalesce(sum(b.units), 0), v_excess) into v_taken
    from (select b.units from balance b where b.account = v_free and b.asset = c.asset for update) b;
    missing := v_excess - v_taken;
    verdict := 'closed_short';
    if v_taken > 0 then
      perform ledger_book(array['channel:' || p_channel || ':excess'], array[1], array['channel_excess'], array[p_channel], array[p_at],
        array[v_free], array['external:' || c.chain], array[c.asset], array[v_taken]);
    end if;
  elsif c.booked > p_claimed then
    perform ledger_book(array['channel:' || p_channel || ':return'], array[1], array['channel_return'], array[p_channel], array[p_at],
      array['external:' || c.chain], array[v_free], array[c.asset], array[c.booked - p_claimed]);
  end if;
  update channel set status = 'closed', claimed = p_claimed, returned = greatest(c.booked - p_claimed, 0), purchase_id = null,
    updated_at = p_at
  where id = p_channel;
end $$;
