-- Sessions of MCP clients up to protocol 2025-11-25, and the questions to those clients. Any instance can serve either.

create table mcp_session (
  -- SHA-256 of the session id, which is a secret.
  id_hash bytea primary key,
  key_id text not null references access_key (id) on delete cascade,
  capabilities jsonb not null,
  used_at timestamptz not null,
  expires_at timestamptz not null
);
create index mcp_session_key on mcp_session (key_id, used_at);
create index mcp_session_expiry on mcp_session (expires_at);

create table mcp_question (
  id text primary key,
  session_id_hash bytea not null references mcp_session (id_hash) on delete cascade,
  -- JSON of the id of the client's call that asks, a text or a number.
  request_id text not null,
  answer jsonb,
  -- Set when the client cancels the call, at any instance. The row remains until the call has ended.
  cancelled boolean not null default false,
  asked_at timestamptz not null
);
create index mcp_question_session on mcp_question (session_id_hash);
