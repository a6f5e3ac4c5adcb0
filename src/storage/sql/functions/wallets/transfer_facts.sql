-- The facts for the decision on a transfer, in one round trip: both wallets, their signers, the compliance facts, the review of
-- exactly this transfer, and the AML rules that it would break. A preview: the reserve judges windows and reviews again.
--
-- Arguments
--   p_windows: the AML windows to judge
--   p_subject: subject of the review, with {payer} where the paying wallet's address belongs
-- Locks: none.
create or replace function transfer_facts(
  p_account text, p_destination text, p_token text, p_units bigint, p_chain text, p_at timestamptz, p_windows jsonb, p_subject text,
  out address text, out origin jsonb, out owner jsonb, out card_cover bigint,
  out has_evm_key boolean, out has_passkey boolean, out is_own_wallet boolean,
  out country text, out is_blocked boolean, out travel_rule_id text, out unanswered text, out is_declined boolean, out listed_id text,
  out review_id text, out review_status text, out review_lists text[], out is_released boolean,
  out exceeded jsonb
) language plpgsql volatile as $$
#variable_conflict use_column
begin
  select w.address, w.origin, w.owner, w.card_cover into address, origin, owner, card_cover from wallet w where w.account_id = p_account;
  has_evm_key := exists (select from wallet_signer s where s.account_id = p_account);
  has_passkey := exists (select from passkey k where k.account_id = p_account);
  is_own_wallet := exists (select from wallet w where w.address = p_destination);
  select f.country, f.is_blocked, f.travel_rule_id, f.unanswered, f.is_declined, f.listed_id
  into country, is_blocked, travel_rule_id, unanswered, is_declined, listed_id
  from compliance_facts(p_account, p_destination, p_token, p_units, p_chain, p_at) f;
  select r.id, r.status, r.lists, aml_released(p_account, r.id, p_at) into review_id, review_status, review_lists, is_released
  from aml_review r
  where r.account_id = p_account and r.subject = replace(p_subject, '{payer}', address) and r.status <> 'open'
  order by r.id desc limit 1;
  exceeded := outflow_exceeded(p_account, p_windows, p_at);
end $$;
