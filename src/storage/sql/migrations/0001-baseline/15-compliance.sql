-- Compliance: blocked addresses, Travel Rule data, identity reviews, and people's decisions on them. Personal data is sealed and
-- can be erased; the verdict stays.

create table blocked_address (
  account_id text not null references account,
  address text not null check (address = lower(address)),
  created_at timestamptz not null,
  primary key (account_id, address)
);

create table travel_rule (
  id text collate "C" primary key,
  account_id text not null references account,
  status text not null check (status in ('required', 'not_required', 'sent', 'accepted', 'declined')),
  token text not null,
  units bigint not null check (units > 0),
  destination text not null check (destination = lower(destination)),
  chain text not null,
  -- The decision of the transfer that it belongs to, for as long as that transfer's money is not given back.
  decision_id text collate "C" unique references decision,
  -- The IVMS101 payload, sealed; null once it was erased.
  sealed bytea,
  created_at timestamptz not null,
  erased_at timestamptz,
  -- The institution that gets the data; null: none does.
  vasp_name text,
  vasp_lei text,
  -- The network's name for the message, once it was sent, and the other institution's answer.
  network_reference text,
  answer text,
  sent_at timestamptz,
  tried_at timestamptz,
  check ((sealed is null) = (erased_at is not null))
);
create index travel_rule_of_transfer on travel_rule (account_id, destination, token, units, id);
create index travel_rule_untold on travel_rule (tried_at)
  where vasp_name is not null and status in ('required', 'sent') and sealed is not null;
create index travel_rule_listed on travel_rule (id) where status = 'declined' and vasp_name is null;

-- An administrator's decision on Travel Rule data with a name on a sanctions list. One per data record, never changed.
create table travel_rule_decision (
  travel_rule_id text collate "C" primary key references travel_rule,
  decided_by text not null references account,
  verdict text not null check (verdict in ('approve', 'reject')),
  reason text not null,
  decided_at timestamptz not null
);

create table kyc_application (
  id text collate "C" primary key,
  account_id text not null references account,
  level text not null check (level in ('basic', 'full')),
  status text not null check (status in ('init', 'pending', 'approved', 'retry', 'rejected')),
  labels text[] not null,
  -- The applicant's data so far, sealed; null once it was erased.
  sealed bytea,
  -- The provider's reference, once there is one.
  reference text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  reviewed_at timestamptz
);
create unique index kyc_application_open on kyc_application (account_id, level) where status <> 'retry';
create index kyc_application_pending on kyc_application (updated_at) where status = 'pending';
create index kyc_application_reference on kyc_application (reference) where reference is not null;

-- A person's decision on an applicant whose name is on a sanctions list. One for an application, never changed.
create table kyc_decision (
  application_id text collate "C" primary key references kyc_application,
  decided_by text not null references account,
  verdict text not null check (verdict in ('approve', 'reject')),
  reason text not null,
  decided_at timestamptz not null
);

-- Spends that AML wants a person to see. Once released, exactly that spend passes once within a day.
create table aml_review (
  id text collate "C" primary key,
  account_id text not null references account,
  -- The denial that asked for the review.
  decision_id text collate "C" not null unique references decision,
  -- Identifies exactly this spend among those of its account.
  subject text not null,
  -- The lists that ask for a review. Travel Rule data and listed names are decided on elsewhere.
  lists text[] not null check (cardinality(lists) > 0),
  status text not null check (status in ('open', 'released', 'blocked')),
  created_at timestamptz not null,
  decided_by text references account,
  reason text,
  decided_at timestamptz,
  -- The decision of the spend that the release let through.
  used_by text collate "C" references decision,
  check ((status = 'open') = (decided_at is null)),
  check ((decided_by is null) = (decided_at is null)),
  check ((reason is null) = (decided_at is null)),
  check (used_by is null or status = 'released')
);
create unique index aml_review_open on aml_review (account_id, subject) where status = 'open';
create index aml_review_decided on aml_review (account_id, subject, id) where status <> 'open';
