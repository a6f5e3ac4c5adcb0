-- The public keys of receipts: each that has signed one stays published. A row without the code of a gateway counts for nothing.
create table receipt_key (
  -- RFC 7638 thumbprint.
  kid text collate "C" primary key,
  -- The Ed25519 key, base64url.
  public_key text not null,
  mac text not null,
  published_at timestamptz not null
);
