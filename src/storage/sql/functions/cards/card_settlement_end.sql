-- Records the outcome of a try. When it was settled, a debt that stood for it is paid. When it was refused, it is tried again after
-- a pause that doubles, and from the p_max_tries-th try on it is a debt too.
--
-- Verdicts: open (not sending, or its reservation is still open); settled; refused; owed (refused, and a debt now).
-- Locks: the account; the settlement's row; the debt's row.
create or replace function card_settlement_end(p_id text, p_max_tries int, p_at timestamptz, out verdict text) language plpgsql as $$
#variable_conflict use_column
declare
  s card_settlement;
  d debt;
  v_account text;
  v_status text;
  v_posted text;
begin
  verdict := 'open';
  select account_id into v_account from card_settlement where id = p_id and status = 'sending';
  if not found then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended(v_account, 0));
  select * into s from card_settlement where id = p_id and status = 'sending' for update;
  if not found then
    return;
  end if;
  select r.status into v_status from reservation r where r.decision_id = s.decision_id;
  if v_status = 'reserved' then
    return;
  end if;
  select * into d from debt where account_id = s.account_id and kind = 'settlement' and reference = s.id and owed > 0 for update;
  if v_status = 'settled' then
    verdict := 'settled';
    update card_settlement set status = 'settled', ended_at = p_at where id = s.id;
    if d.id is not null then
      select l.verdict into v_posted from ledger_post('debt:' || d.id || ':' || d.owed, 'debt_payment', d.id, p_at,
        array[d.paid_to], array['receivable:debts'], array[d.asset], array[d.owed]) l;
      if v_posted <> 'posted' then
        raise exception 'a payment of a debt was not posted: %', v_posted;
      end if;
      update debt set owed = 0, paid_at = p_at where id = d.id;
    end if;
    return;
  end if;
  verdict := 'refused';
  update card_settlement set status = 'refused', next_try_at = p_at + least(interval '1 second' * power(2, least(tries, 12)),
      interval '1 hour'),
    refused_by = coalesce((select case t.failure_code when 'signature_rejected' then 'authorization' else 'transfer' end
      from transfer t where t.decision_id = s.decision_id), 'transfer')
  where id = s.id;
  if s.tries >= p_max_tries and d.id is null and s.owed_units > 0 then
    verdict := 'owed';
    -- Named for its try: after a reorganization of the chain, a settlement that was paid may be owed again.
    perform debt_book('settlement:' || s.decision_id, s.account_id, 'settlement', s.id, s.card_id, s.owed_asset, s.owed_units,
      s.paid_to, p_at);
  end if;
end $$;
