-- A spend as its caller asks for it, and what was decided: written once, for every function that passes one on.
--
-- decision: id of the decision to be written
-- key, policy_version: null: the owner itself, without budgets
-- violations: those of the policy's static rules, which the caller has evaluated, perhaps with the pause of the key
-- asset, units: what is held, in smallest units
-- usd_micros: its worth, counted in budgets; null: unknown, which every budget denies
-- daily_max, daily_count: limits of the key's day; null: no limit
-- budgets: rules of the key's week and month, see budget_exceeded; null: none
-- counterparty, cooldown_seconds: the payee, and how long a new one must wait; null: no cool-down
-- needs_approval, is_approved: above the approval limit; called again by its owner's approval
-- source, held: the ledger accounts of the hold; null: the money is not ours (relays)
-- principal, idempotency_key, fingerprint: null key: not idempotent
-- windows: the AML windows to judge and count; null: none
-- mac: authentication code of the decision unless a counter or a balance objects
-- subject, released: identifies the spend for an AML review; the review that released it
-- approval: the approval under which the call runs; it may overrule violations, see approval_overrules, and allows one spend
-- nonce: nonce of the signed request, which its authentication has used up in a commit of its own, perhaps on a database that has
--   failed since; null: not signed
-- purse: {source, held, chunk}: the purse that pays where it has enough. Otherwise the wallet holds a chunk of money for it, within
--   what the budgets leave of the key's periods, or the units where it has less; null: none
create type spend_request as (
  decision text, account text, key text, policy_version int, policy_hash text, operation text, facts jsonb, violations jsonb,
  asset text, units bigint, usd_micros bigint, daily_max bigint, daily_count int, budgets jsonb, counterparty text,
  cooldown_seconds int, needs_approval boolean, is_approved boolean, source text, held text, principal text, idempotency_key text,
  fingerprint text, at timestamptz, windows jsonb, mac text, subject text, released text, approval text, nonce text,
  nonce_expires_at timestamptz, purse jsonb
);

-- is_new: this call decided, and its rows are to be recorded
-- source, held, units: what is held, if it is another than asked for, by a purse
-- screening: the objection of AML, for which a review is asked
create type spend_outcome as (
  verdict text, replayed boolean, decision_id text, violations jsonb, available_units bigint, is_new boolean, source text, held text,
  units bigint, screening jsonb
);
