-- The purse in which a kept deposit lies, as its place in the ledger; null: the wallet.
alter table movement_review add column place text;
