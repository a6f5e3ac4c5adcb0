-- Writes the row of a transfer whose money is reserved, and uses up its intent.
--
-- Arguments: p_transfer has the columns of the row, and "intent": id of the signed intent, or null.
-- Returns the paying wallet, from which it is sent; null if the intent was already used, and nothing was written.
-- Locks: the intent's row. Nothing is waited for after it.
create or replace function transfer_insert(p_account text, p_decision text, p_transfer jsonb) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := p_transfer->>'at';
begin
  if p_transfer->>'intent' is not null then
    update intent i set used_at = v_at where i.id = p_transfer->>'intent' and i.account_id = p_account and i.used_at is null;
    if not found then
      return null;
    end if;
  end if;
  insert into transfer
    (id, account_id, decision_id, token, units, destination, chain, state, created_at, updated_at, authorized, signer, valid_until, mac, payer)
  values (p_transfer->>'id', p_account, p_decision, p_transfer->>'token', (p_transfer->>'units')::bigint, p_transfer->>'destination',
    p_transfer->>'chain', 'reserved', v_at, v_at, p_transfer->'authorized', p_transfer->>'signer',
    (p_transfer->>'valid_until')::timestamptz, p_transfer->>'mac', coalesce(p_transfer->>'payer', 'wallet'))
  on conflict do nothing;
  if not found then
    return null;
  end if;
  return (select jsonb_build_object('origin', w.origin, 'owner', w.owner, 'card_cover', w.card_cover::text)
    from wallet w where w.account_id = p_account);
end $$;
