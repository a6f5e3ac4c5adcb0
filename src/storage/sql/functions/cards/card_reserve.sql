-- Reserves a purchase's money from its first source, under its decision.
--
-- Arguments: p_spend as in card_authorize; p_mac is stored where the facts are those that the caller expected.
-- Verdicts and locks: those of spend_reserve.
create or replace function card_reserve(
  p_spend jsonb, p_facts jsonb, p_place text, p_asset text, p_units bigint, p_usd_micros bigint, p_approval text,
  out verdict text, out decision_id text, out violations jsonb
) language plpgsql as $$
declare
  q record;
begin
  select * into q from jsonb_to_record(p_spend) as (
    decision text, account text, key text, policy_version int, policy_hash text, operation text, facts text, violations text,
    daily_max bigint, daily_count int, counterparty text, cooldown_seconds int, needs_approval boolean, at timestamptz, budgets text,
    mac text
  );
  select s.verdict, s.decision_id, s.violations into verdict, decision_id, violations from spend_reserve(
    q.decision, q.account, q.key, q.policy_version, q.policy_hash, q.operation, p_facts,
    q.violations::jsonb, p_asset, p_units, p_usd_micros, q.daily_max, q.daily_count, q.counterparty,
    q.cooldown_seconds, q.needs_approval and p_approval is null, false, q.account || ':' || p_place || ':available',
    q.account || ':' || p_place || ':held', null, null, null, q.at, p_budgets => q.budgets::jsonb,
    p_approval => p_approval, p_mac => case when p_facts = q.facts::jsonb then q.mac end) s;
end $$;
