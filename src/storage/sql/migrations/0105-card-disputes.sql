-- Disputes of card purchases at the processor. Amounts are cents.
create table card_dispute (
  -- Name of the processor.
  token text collate "C" primary key,
  authorization_id text collate "C" not null references card_authorization,
  status text not null check (status in ('open', 'won', 'lost')),
  -- What the processor says that it gives back; 0 until it is won.
  units bigint not null check (units >= 0),
  -- What was credited for it, and not taken back.
  credited bigint not null default 0 check (credited >= 0),
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index card_dispute_of_authorization on card_dispute (authorization_id);
