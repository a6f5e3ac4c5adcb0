-- Replacements of the key that owns smart accounts. Each account's Safe changes its owner on each chain by itself.

-- The first owner: addresses are computed from it wherever nothing else is stated. Absent: the owner of now.
alter table deployment drop constraint deployment_name_check;
alter table deployment add constraint deployment_name_check
  check (name in ('data_key', 'chain_id', 'chain_owner', 'chain_first_owner', 'root_key'));

-- A key becomes the owner once, and never again after it was replaced.
create table owner_rotation (
  to_owner text primary key check (to_owner = lower(to_owner)),
  from_owner text not null unique check (from_owner = lower(from_owner) and from_owner <> to_owner),
  begun_at timestamptz not null,
  finished_at timestamptz
);
create unique index owner_rotation_open on owner_rotation ((finished_at is null)) where finished_at is null;

-- The escrow's first owner, which its address is computed from; null: the first owner of the deployment. That of a wallet is "first" in
-- its origin.
alter table wallet add column escrow_first text check (escrow_first = lower(escrow_first));

-- A Safe that may have a former owner, on a chain, and its way to a new one.
create table owner_swap (
  chain text not null,
  address text collate "C" not null check (address = lower(address)),
  to_owner text not null references owner_rotation,
  -- Null: the gateway's own Safe, which spends the allowances of agents.
  account_id text references account,
  is_escrow boolean not null default false,
  -- new: not looked at. ready: not deployed, and a signed swap waits for its deployment. sent: its swap was sent. swapped: the chain
  -- shows the new owner in a block that can no longer change. given: it belongs to its person. foreign: to somebody unknown.
  state text not null check (state in ('new', 'ready', 'sent', 'swapped', 'given', 'foreign')),
  -- The gateway's key that the chain showed last; for a Safe that is not deployed, the one that it would have after its kept swaps.
  owner text,
  -- The signed operation, kept before it is sent. It does nothing but this one swap, so that it is no secret.
  from_owner text,
  operation_id text,
  operation_hash text,
  signature text,
  transaction_hash text,
  attempt int not null default 0,
  created_at timestamptz not null,
  -- Taken by a gateway, or not worth a look, until then.
  due_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (chain, address, to_owner),
  check ((signature is null) = (operation_id is null) and (signature is null) = (from_owner is null)
    and (signature is null) = (operation_hash is null)),
  check (state not in ('ready', 'sent') or signature is not null)
);
create index owner_swap_due on owner_swap (chain, due_at) where state in ('new', 'sent');
create index owner_swap_ready on owner_swap (chain, address) where state = 'ready';
