-- The room that an account's stored answers take is counted by account. Parts written before have none, and are gone in a day.
alter table purchase_answer add column account_id text collate "C";
create index purchase_answer_of_account on purchase_answer (account_id) where account_id is not null;
create index purchase_answered on purchase (account_id, delivered_at) where delivered is not null;

-- Of a seller's purchases, the latest of each account.
create index purchase_from_seller_by_account on purchase (seller, account_id, id) where state = 'settled';
