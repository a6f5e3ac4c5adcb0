-- Ends a transfer, once: settles or releases its money, and completes its row as the ledger says, in one round trip. Money sent to
-- one of our wallets is credited to it; money sent to a purse or an escrow stays in the books there; any other money leaves them.
--
-- Arguments
--   p_is_confirmed: the chain executed it. Otherwise it never will, and the money goes back to its source.
--   p_destination: the address, in lower case
--   p_hash, p_failure, p_code: for the row; null: unchanged, none, none
-- Verdicts: those of spend_resolve. A transfer whose money was resolved the other way keeps that outcome.
-- Locks: those of spend_resolve; then the transfer's row.
create or replace function transfer_finish(
  p_transfer text, p_decision text, p_chain text, p_destination text, p_is_confirmed boolean,
  p_hash text, p_failure text, p_code text, p_at timestamptz, out verdict text
) language plpgsql as $$
declare
  v_destination text;
  v_purse text;
begin
  if p_is_confirmed then
    select p.purse_id into v_purse from purchase p join purse u on u.id = p.purse_id
    where p.decision_id = p_decision and u.address = p_destination;
    select w.account_id || ':' || p_chain || ':available' into v_destination from wallet w where w.address = p_destination;
    v_destination := coalesce(v_destination, 'external:' || p_chain);
  end if;
  verdict := case
    when v_purse is not null then purse_fill(p_decision, v_purse, p_at)
    when exists (select from card_pull l where l.decision_id = p_decision) then card_pull_end(p_decision, p_is_confirmed, p_at)
    else spend_resolve(p_decision, case when p_is_confirmed then 'settled' else 'released' end, v_destination, p_at)
  end;
  update transfer t
  set state = case when verdict in ('settled', 'already_settled') then 'confirmed' else 'failed' end,
    transaction_hash = coalesce(p_hash, t.transaction_hash), failure = p_failure, failure_code = p_code, updated_at = p_at
  where t.id = p_transfer and t.state not in ('confirmed', 'failed');
end $$;
