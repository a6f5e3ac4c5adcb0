-- Approvals: calls that wait for their owner. An approval is bound to exactly the call that asked for it, and runs it at most
-- once.

create table approval (
  id text collate "C" primary key,
  account_id text not null references account,
  key_id text collate "C" not null,
  -- The decision that asked for it.
  decision_id text collate "C" not null unique references decision,
  operation text not null,
  -- The caller's JSON as it was sent: it is decoded anew when the call runs.
  input text not null,
  fingerprint text not null,
  idempotency_key text,
  -- The agent's reason for an exception to its policy: untrusted text. Null where the policy itself asks for the approval.
  reason text,
  -- The rules that the call breaks, as the owner sees them. An approved call may break these, and no other.
  violations jsonb not null,
  status text not null check (status in ('pending', 'approved', 'rejected', 'withdrawn')),
  -- The owner's words to the agent.
  note text,
  -- The decision that allowed the approved call. An approval allows one.
  used_by text collate "C",
  answer jsonb,
  problem jsonb,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  decided_at timestamptz,
  check ((status = 'pending') = (decided_at is null)),
  check (answer is null or problem is null),
  check (status = 'approved' or (answer is null and problem is null and used_by is null)),
  check (reason is not null or violations = '[]')
);
create index approval_of_account on approval (account_id, id);
create index approval_unfinished on approval (id) where status = 'approved' and answer is null and problem is null;
create index approval_waiting on approval (key_id, fingerprint) where status = 'pending';
