-- A receipt is stored without its payload, which its decision says again (RFC 7515, appendix F): `issuer` is all of it that the decision
-- does not have. Null: a receipt from before, stored whole.
alter table decision_seal add column issuer text;
