/** Escrows in the books and on the chain: the chain holds at least what the books say. */
import { raiseAlarm } from '../../../books/alarms/alarms.ts'
import { operationOutcome } from '../../../books/evidence/operation-outcome.ts'
import { escrowPlace } from '../../../books/ledger/accounts.ts'
import type { Clock } from '../../../core/base/clock.ts'
import type { Log } from '../../../core/base/log.ts'
import type { Stablecoin } from '../../../core/money/money.ts'
import type { Address, Chain, Mint } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { addressOf, operationOf, readOpenTransfers, stablecoinOf } from '../store.ts'

/** Rows per round. */
const PAGE = 100

interface EscrowBalance {
  readonly accountId: string
  readonly address: Address
  readonly asset: Stablecoin
  readonly units: bigint
}

/** Reads what escrows have in the books, by account and asset. @param accountId of one account; null: all after `after`. */
async function readEscrowBalances(
  database: Connection,
  { chain, accountId = null, after = '' }: { chain: string; accountId?: string | null; after?: string },
): Promise<readonly EscrowBalance[]> {
  const rows = await database.call<{ account_id: string; escrow: string; asset: string; units: bigint }>(
    {
      name: 'card_escrow_balances',
      text: `select w.account_id, w.escrow, b.asset, sum(b.units)::bigint as units
        from (
          select account_id, escrow from wallet
          where escrow is not null and account_id > $3 and ($2::text is null or account_id = $2)
          order by account_id limit $4
        ) w
        join balance b on b.account in (w.account_id || ':escrow.' || $1 || ':available', w.account_id || ':escrow.' || $1 || ':held')
        group by w.account_id, w.escrow, b.asset order by w.account_id, b.asset`,
    },
    [chain, accountId, after, PAGE],
  )
  return rows.map((row) => ({
    accountId: row.account_id,
    address: addressOf(row.escrow),
    asset: stablecoinOf(row.asset),
    units: row.units,
  }))
}

interface Parts {
  readonly database: Connection
  readonly chain: Chain
}

/** Money that the books have and the chain has not. @returns 0n while the books move, and what open transfers explain. */
async function findLack(
  { database, chain }: Parts,
  { accountId, address, asset, units }: EscrowBalance,
): Promise<bigint> {
  let lack = units - (await chain.readBalance(asset, address))
  if (lack <= 0n) return 0n
  for (const transfer of await readOpenTransfers({ database, chain }, { accountId, address })) {
    if (!transfer.wallet.isEscrow || transfer.token !== asset) continue
    const { status } = await operationOutcome(chain, operationOf(transfer), 0)
    if (status !== 'absent') lack -= transfer.units
  }
  const again = await readEscrowBalances(database, { chain: chain.name, accountId })
  const isStill = again.some((other) => other.asset === asset && other.units === units)
  return isStill && lack > 0n ? lack : 0n
}

/** Sandbox: mints what escrows lack on a fresh chain. @returns the number of topped-up balances. */
export async function levelEscrows(parts: Parts): Promise<number> {
  const mints: Mint[] = []
  let after = ''
  for (;;) {
    const balances = await readEscrowBalances(parts.database, { chain: parts.chain.name, after })
    for (const balance of balances) {
      const units = await findLack(parts, balance)
      if (units > 0n) mints.push({ token: balance.asset, to: balance.address, units })
    }
    const last = balances.at(-1)
    if (last === undefined) break
    after = last.accountId
  }
  if (mints.length > 0) await parts.chain.mint(mints)
  return mints.length
}

/**
 * Creates a round that compares a page of escrows with the chain. One that is short in two rounds raises an alarm: nodes
 * may answer from different blocks.
 */
export function createEscrowComparison(
  parts: Parts & { readonly clock: Clock; readonly log: Log },
): () => Promise<void> {
  const suspected = new Set<string>()
  let after = ''
  return async () => {
    const balances = await readEscrowBalances(parts.database, { chain: parts.chain.name, after })
    for (const balance of balances) {
      const { accountId, asset } = balance
      const name = `${accountId} ${asset}`
      const lack = await findLack(parts, balance)
      if (lack === 0n) suspected.delete(name)
      else if (!suspected.has(name)) suspected.add(name)
      else
        await raiseAlarm(parts, {
          domain: 'cards',
          objectId: `${accountId}:${escrowPlace(parts.chain.name)}`,
          reason: 'escrow_short',
          reported: { asset, units: lack.toString() },
          at: parts.clock(),
        })
    }
    after = balances.at(-1)?.accountId ?? ''
  }
}
