-- Keys of delegations that their parent signed by itself, without asking the gateway.
--
-- jti: the delegation's name, unique below its parent; null: the gateway was asked
-- claims_hash: SHA-256 of its claims' canonical JSON, in hex: a known name with other claims is refused
alter table access_key
  add column jti text collate "C",
  add column claims_hash text collate "C",
  add constraint access_key_signed check ((jti is null) = (claims_hash is null) and (jti is null or path <> '{}'));
create unique index access_key_jti on access_key ((path[cardinality(path)]), jti) where jti is not null;
