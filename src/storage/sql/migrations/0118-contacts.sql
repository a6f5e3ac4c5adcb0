-- Contacts: the names that an owner gives to payees. One that was removed keeps its id and its hashes alone, for what names it.
create table contact (
  id text collate "C" primary key,
  account_id text collate "C" not null references account,
  -- Keyed hashes of its name: as it is written, and as it looks.
  name_hash text collate "C" not null,
  look_hash text collate "C" not null,
  -- {name, email}, sealed; null: removed.
  sealed bytea,
  -- [{chain, address}]; a chain of null is any.
  addresses jsonb not null,
  -- Bank account that it is paid at.
  recipient_id text collate "C",
  -- The person who added it.
  added_by text collate "C" not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- When its addresses or its recipient last became others.
  readdressed_at timestamptz not null,
  removed_at timestamptz,
  check ((removed_at is null) = (sealed is not null))
);
create index contact_of_account on contact (account_id, id) where removed_at is null;
create unique index contact_look on contact (account_id, look_hash) where removed_at is null;

-- The contact that a call named and what it was then: {contactId, member, chain, value}. It pays that, or nobody. Null: the call named none.
alter table approval add column payee jsonb;
alter table schedule add column payee jsonb;
