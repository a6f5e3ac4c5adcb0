-- People: one account, several people. A person keeps their own account as their identity, with their factors and sessions, and acts for
-- the account of their membership. Without one they are the owner of their own account, so that accounts of one person have no rows.
create table membership (
  -- One membership a person.
  person_id text collate "C" primary key references account,
  account_id text collate "C" not null references account,
  role text not null check (role in ('accountant', 'viewer', 'approver', 'owner')),
  joined_at timestamptz not null,
  -- The person's own lock; that of the account holds for everybody. Recovery ends it.
  locked_at timestamptz
);
create index membership_of_account on membership (account_id, joined_at, person_id);

-- Open invitations; those that end are deleted, and the journal keeps them.
create table invitation (
  id text collate "C" primary key,
  account_id text collate "C" not null references account,
  -- Keyed hash and sealed form of the only address that it is valid for.
  destination_hash text not null,
  sealed_address bytea not null,
  -- Keyed hash of its code.
  code_hash text not null unique,
  role text not null check (role in ('accountant', 'viewer', 'approver', 'owner')),
  invited_by text collate "C" not null references account,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create unique index invitation_of_address on invitation (account_id, destination_hash);
create index invitation_expiry on invitation (expires_at);
