-- Spends that were denied are entries of the activity.
create index decision_refused on decision (account_id, at) where verdict in ('deny', 'insufficient_funds');
-- Payments for FX quotes that the owner's wallet paid are found by the id that their answer names.
create index decision_of_fx_payment on decision ((facts #>> '{found,paymentId}')) where operation = 'x402.fx' and verdict = 'allow';
