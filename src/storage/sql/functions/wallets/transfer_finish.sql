-- Ends a transfer, once: settles or releases its money, and completes its row as the ledger says, in one round trip. Money sent to
-- one of our wallets is credited to it; any other money leaves the books.
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
begin
  if p_is_confirmed then
    select w.account_id || ':' || p_chain || ':available' into v_destination from wallet w where w.address = p_destination;
    v_destination := coalesce(v_destination, 'external:' || p_chain);
  end if;
  verdict := (spend_resolve(p_decision, case when p_is_confirmed then 'settled' else 'released' end, v_destination, p_at));
  update transfer t
  set state = case when verdict in ('settled', 'already_settled') then 'confirmed' else 'failed' end,
    transaction_hash = coalesce(p_hash, t.transaction_hash), failure = p_failure, failure_code = p_code, updated_at = p_at
  where t.id = p_transfer and t.state not in ('confirmed', 'failed');
end $$;
