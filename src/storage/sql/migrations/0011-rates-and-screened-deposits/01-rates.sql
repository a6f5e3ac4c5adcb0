-- Reference rates: the newest publication of each source, so that a restart during its outage does not stop conversions.
create table rate_publication (
  publisher text primary key,
  source text not null,
  as_of timestamptz not null,
  -- Decimal strings by ISO 4217 code: units of the currency for one euro.
  per_euro jsonb not null,
  fetched_at timestamptz not null
);
