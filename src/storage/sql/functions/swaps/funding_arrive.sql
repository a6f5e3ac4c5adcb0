-- Holds what has arrived for the payment that waits for it, once, and lets the payment be sent. The rest is available.
--
-- Arguments: p_source is the account of what is on its way, of which p_units have arrived; p_id names the transaction of the ledger.
-- Returns what it has held; 0: no payment waits for it any more, or its key or account was stopped, which ends it unpaid.
-- Locks: the funding; the reservation; those of spend_resolve, or the balances of its hold; the transfer.
create or replace function funding_arrive(p_funding text, p_id text, p_reference text, p_source text, p_units bigint, p_at timestamptz)
returns bigint language plpgsql as $$
declare
  f funding;
  r reservation;
begin
  select * into f from funding where id = p_funding for update;
  if f.state is distinct from 'moving' or p_units < f.needed then
    return 0;
  end if;
  select * into r from reservation where decision_id = f.decision_id for update;
  if r.status is distinct from 'reserved' then
    return 0;
  end if;
  -- The transfer was not sent yet: whoever was stopped meanwhile pays nobody.
  if not key_is_active(r.key_id) or exists (select from account a where a.id = r.account_id and a.status = 'locked') then
    perform funding_fail(p_funding, 'the key or the account was stopped while its money was on its way', 'provider_unavailable', p_at);
    return 0;
  end if;
  perform ledger_book(array[p_id], array[1], array['bridge'], array[p_reference], array[p_at], array[p_source], array[r.held],
    array[r.asset], array[f.needed]);
  update reservation set units = r.units + f.needed where decision_id = f.decision_id;
  update funding set state = 'arrived', updated_at = p_at where id = p_funding;
  update transfer set state = 'reserved', updated_at = p_at
  where decision_id = f.decision_id and funding_id is null and state = 'funding';
  return f.needed;
end $$;
