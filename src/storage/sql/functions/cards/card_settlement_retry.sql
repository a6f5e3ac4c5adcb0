-- Tries a refused settlement again under a new decision, once its pause is over.
--
-- Verdicts: retried; early (not refused, not due, or unknown).
-- Locks: the account; the settlement's row.
create or replace function card_settlement_retry(p_id text, p_decision text, p_at timestamptz, out verdict text) language plpgsql as $$
#variable_conflict use_column
declare
  s card_settlement;
  v_account text;
begin
  verdict := 'early';
  select account_id into v_account from card_settlement where id = p_id;
  if not found then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended(v_account, 0));
  select * into s from card_settlement where id = p_id and status = 'refused' and next_try_at <= p_at for update;
  if found then
    verdict := 'retried';
    perform card_settlement_reserve(p_decision, s, p_at);
    update card_settlement set status = 'sending', next_try_at = null, decision_id = p_decision, tries = tries + 1 where id = p_id;
  end if;
end $$;
