-- Gives a wallet that the gateway owns to another owner, who can empty it from then on: what the gateway has promised of it must have
-- left it before. Cards and their clearings wait.
--
-- Verdicts: given; busy (purchases hold money in it, settlements or pulls from it are not paid, or its account owes a debt: nothing
--   changed); kept (it has an owner of its own).
-- Locks: the account, then the wallet's row.
create or replace function wallet_give(p_account text, p_owner jsonb, out verdict text) language plpgsql as $$
declare
  w wallet;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_account, 0));
  select * into w from wallet where account_id = p_account for update;
  verdict := case
    when w.owner->>'kind' <> 'gateway' or p_owner->>'kind' = 'gateway' then 'kept'
    when wallet_is_busy(p_account) then 'busy'
    else 'given' end;
  if verdict = 'given' then
    update wallet set owner = p_owner where account_id = p_account;
  end if;
end $$;
