/** Identifies, in one query, transfers on the chain that are explained by the gateway's own transfers and relays. */
import { type Chain, type FoundTransfer, type Hex, tokenAddress } from '../../providers/chain.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { lowerCase, stablecoinOf } from '../store.ts'

const statement: Statement = {
  name: 'wallets_settled_movements',
  text: `select t.transaction_hash, t.token, w.address as source, t.destination, t.units
    from transfer t join wallet w on w.account_id = t.account_id
    where t.state = 'confirmed' and t.chain = $2 and t.transaction_hash = any($1)
    union all
    select transaction_hash, token, payer, destination, units
    from relay where state = 'confirmed' and chain = $2 and transaction_hash = any($1)`,
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
  { database, chain }: { database: Connection; chain: Pick<Chain, 'name' | 'tokens'> },
  found: readonly FoundTransfer[],
): Promise<ReadonlySet<Hex>> {
  const hashes = [...new Set(found.map(({ transactionHash }) => transactionHash))]
  if (hashes.length === 0) return new Set()
  const settled = new Map<string, number>()
  for (const row of await database.call<Row>(statement, [hashes, chain.name])) {
    const token = lowerCase(tokenAddress(chain, stablecoinOf(row.token)))
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
