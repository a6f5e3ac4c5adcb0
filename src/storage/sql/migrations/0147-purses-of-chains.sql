-- Purses on further chains: a purchase that is not paid on the chain of its account's wallet has a purse of its own, on the seller's
-- chain. Null: the chain of the account's wallet.
alter table purse add column chain text;
