/** Verdicts of others: a person's on a name that is on a sanctions list, and another institution's on Travel Rule data. */
export const verdicts = `
-- Who decided on a hit, and why. One decision for an application, and none is changed.
create table kyc_decision (
  application_id text collate "C" primary key references kyc_application,
  decided_by text not null references account,
  verdict text not null check (verdict in ('approve', 'reject')),
  reason text not null,
  decided_at timestamptz not null
);
create index kyc_application_reference on kyc_application (reference) where reference is not null;

alter table travel_rule
  -- The institution that is told; null: nobody is.
  add column vasp_name text,
  add column vasp_lei text,
  -- The network's name of what was sent, once it was, and what the other institution said of it.
  add column network_reference text,
  add column answer text,
  add column sent_at timestamptz,
  add column tried_at timestamptz;
create index travel_rule_untold on travel_rule (tried_at)
  where vasp_name is not null and status in ('required', 'sent') and sealed is not null;
`
