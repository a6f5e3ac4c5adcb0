-- Long answers of sellers, in parts that are written as they arrive. The head, and the number of parts, are with the purchase.
create table purchase_answer (
  -- The purchase, the receipt of the answer and the number of the part: each part is sealed for this place.
  id text collate "C" primary key,
  purchase_id text collate "C" not null references purchase,
  sealed bytea not null,
  written_at timestamptz not null
);
-- Sealed bytes do not compress.
alter table purchase_answer alter column sealed set storage external;
create index purchase_answer_of_purchase on purchase_answer (purchase_id);
create index purchase_answer_written on purchase_answer (written_at);

-- The input lacks what is never kept, such as a login: once it is approved, its caller makes the call again.
alter table approval add column awaits_caller boolean not null default false;
