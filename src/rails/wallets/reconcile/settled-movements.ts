/**
 * Identifies, in one query, transfers on the chain that are explained by the gateway's own transfers, relays and swaps. Their payments to a
 * purse or an escrow have left the books, and are booked there by their logs, unless they were made to fund it.
 */
import { type Chain, type FoundTransfer, type Hex, tokenAddress } from '../../../providers/chain/port.ts'
import type { Connection, Statement } from '../../../storage/database.ts'
import { lowerCase, parseStablecoin } from '../store.ts'

const statement: Statement = {
  name: 'wallets_settled_movements',
  text: `select t.transaction_hash, t.token, case t.payer when 'escrow' then w.escrow else w.address end as source, t.destination, t.units
    from transfer t join wallet w on w.account_id = t.account_id
    where t.state = 'confirmed' and t.chain = $2 and t.transaction_hash = any($1)
      and not exists (select from purse u where u.address = t.destination and not exists (
        select from purchase p where p.decision_id = t.decision_id and p.purse_id = u.id))
      and not exists (select from wallet e where e.escrow = t.destination and not exists (
        select from card_pull l where l.decision_id = t.decision_id))
    union all
    select transaction_hash, token, payer, destination, units
    from relay r where state = 'confirmed' and chain = $2 and transaction_hash = any($1)
      and not exists (select from purse u where u.address = r.destination)
      and not exists (select from wallet e where e.escrow = r.destination)
    union all
    select o.transaction_hash, m.token, $3, w.address, m.units
    from swap_order o join wallet w on w.account_id = o.account_id
      cross join lateral (values (o.buy, o.received), (o.sell, o.unsold)) as m (token, units)
    where o.state = 'confirmed' and o.to_chain is null and o.chain = $2 and o.transaction_hash = any($1) and m.units > 0`,
}

interface Row {
  readonly transaction_hash: string
  readonly token: string
  readonly source: string
  readonly destination: string
  readonly units: bigint
}

/** Finds the transactions whose movements are not all explained by settled transfers and relays. */
export async function findUnexplainedTransfers(
  { database, chain }: { database: Connection; chain: Pick<Chain, 'name' | 'tokens' | 'swapDesk'> },
  found: readonly FoundTransfer[],
): Promise<ReadonlySet<Hex>> {
  const hashes = [...new Set(found.map(({ transactionHash }) => transactionHash))]
  if (hashes.length === 0) return new Set()
  const settled = new Map<string, number>()
  for (const row of await database.call<Row>(statement, [hashes, chain.name, lowerCase(chain.swapDesk)])) {
    const token = lowerCase(tokenAddress(chain, parseStablecoin(row.token)))
    const name = [row.transaction_hash, token, row.source, row.destination, row.units].join(' ')
    settled.set(name, (settled.get(name) ?? 0) + 1)
  }
  const unexplained = new Set<Hex>()
  for (const { transactionHash, token, from, to, units } of found) {
    const name = [transactionHash, token, from, to, units].join(' ')
    const count = settled.get(name) ?? 0
    if (count === 0) unexplained.add(transactionHash)
    else settled.set(name, count - 1)
  }
  return unexplained
}
