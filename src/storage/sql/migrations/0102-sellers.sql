-- What every account bought from a seller, newest last, and what is bought by several of them.
create index purchase_from_seller on purchase (seller, id) where state = 'settled';
