-- Books a debt: the gateway has paid p_paid_to for its owner.
--
-- Locks: none but new rows. The caller holds the account.
create or replace function debt_book(
  p_id text, p_account text, p_kind text, p_reference text, p_card text, p_asset text, p_units bigint, p_paid_to text,
  p_at timestamptz
) returns void language plpgsql as $$
declare
  v_posted text;
begin
  insert into debt (id, account_id, kind, reference, card_id, asset, units, owed, paid_to, created_at, tried_at)
  values (p_id, p_account, p_kind, p_reference, p_card, p_asset, p_units, p_units, p_paid_to, p_at, p_at);
  select l.verdict into v_posted from ledger_post('debt:' || p_id, 'debt', p_id, p_at,
    array['receivable:debts'], array[p_paid_to], array[p_asset], array[p_units]) l;
  if v_posted <> 'posted' then
    raise exception 'a debt was not posted: %', v_posted;
  end if;
end $$;
