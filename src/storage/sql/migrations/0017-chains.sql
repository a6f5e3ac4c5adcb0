-- Several chains: differences, shortfalls and owed mints are of one chain each. Until now a wallet was on one chain only.

alter table wallet_drift add column chain text;
update wallet_drift d set chain = (select w.chain from wallet w where w.account_id = d.account_id);
delete from wallet_drift where chain is null;
alter table wallet_drift alter column chain set not null, drop constraint wallet_drift_pkey, add primary key (account_id, chain, token);

alter table wallet_shortfall add column chain text;
update wallet_shortfall s set chain = (select w.chain from wallet w where w.account_id = s.account_id);
alter table wallet_shortfall alter column chain set not null, drop constraint wallet_shortfall_pkey,
  add primary key (account_id, chain, token);

alter table owed_mint add column chain text;
update owed_mint m set chain = (select w.chain from wallet w where w.account_id = m.account_id);
alter table owed_mint alter column chain set not null;
