/**
 * Sandbox: mints on the chain, after the commit, what the books were credited with. The owed mint is recorded
 * together with the credit, so that a failed mint is retried and a mint with a lost answer is not repeated.
 */
import type { Clock } from '../../../core/base/clock.ts'
import type { NewId } from '../../../core/base/ids.ts'
import type { Stablecoin } from '../../../core/money/money.ts'
import type { Address, Chain, Mint } from '../../../providers/chain/port.ts'
import type { Connection, Database, Statement } from '../../../storage/database.ts'
import { lowerCase, type OnChain, parseStablecoin, toAddress } from '../store.ts'
import { missingOnChain } from './level-chain.ts'

export interface OwedMint extends Mint {
  readonly id: string
}

/** Records owed mints in the transaction of the credit. */
export async function recordOwedMints(
  { database, chain, newId }: OnChain & { newId: NewId },
  { accountId, mints, at }: { accountId: string; mints: readonly Mint[]; at: Date },
): Promise<OwedMint[]> {
  const owed = mints.map((mint) => ({ ...mint, id: newId('evt', at) }))
  const rows = owed.map(({ id, token, to, units }) => ({
    id,
    account_id: accountId,
    chain: chain.name,
    token,
    address: lowerCase(to),
    units,
    tried_at: at,
  }))
  if (rows.length > 0) await database.kysely.insertInto('owed_mint').values(rows).execute()
  return owed
}

/** Records one owed mint, in the transaction of the credit. */
export function recordMint({
  chain,
  newId,
  clock,
}: {
  chain: Pick<Chain, 'name'>
  newId: NewId
  clock: Clock
}) {
  return (database: Connection, accountId: string, mint: Mint): Promise<OwedMint[]> =>
    recordOwedMints({ database, chain, newId }, { accountId, mints: [mint], at: clock() })
}

/** Mints what was just recorded. @throws any chain error; the mint stays owed. */
export async function mintOwed(
  { database, chain }: { database: Connection; chain: Pick<Chain, 'mint'> },
  owed: readonly OwedMint[],
): Promise<void> {
  await chain.mint(owed)
  await forgetMints(
    database,
    owed.map(({ id }) => id),
  )
}

interface Row {
  readonly id: string
  readonly account_id: string
  readonly token: string
  readonly address: string
  readonly units: bigint
}

const claim: Statement = {
  name: 'wallets_claim_mints',
  text: `update owed_mint set tried_at = $2 where id in (
      select id from owed_mint where chain = $4 and tried_at < $1 order by tried_at limit $3 for update skip locked)
    returning id, account_id, token, address, units`,
}

/**
 * Claims owed mints on a chain that no process is working on, grouped by wallet and token.
 * @param before latest time of the previous attempt.
 */
export async function claimMints(
  { database, chain }: OnChain,
  { before, at, limit }: { before: Date; at: Date; limit: number },
): Promise<OwedMintsOfWallet[]> {
  const groups = new Map<string, OwedMintsOfWallet>()
  for (const row of await database.call<Row>(claim, [before, at, limit, chain.name])) {
    const key = `${row.account_id} ${row.token}`
    const group = groups.get(key)
    groups.set(key, {
      accountId: row.account_id,
      address: toAddress(row.address),
      token: parseStablecoin(row.token),
      units: (group?.units ?? 0n) + row.units,
      ids: [...(group?.ids ?? []), row.id],
    })
  }
  return [...groups.values()]
}

/** All owed mints of a wallet for one token. @property address lower case. */
export interface OwedMintsOfWallet {
  readonly accountId: string
  readonly address: Address
  readonly token: Stablecoin
  readonly units: bigint
  readonly ids: readonly string[]
}

/** Reads what an account's wallet is owed on a chain. */
export async function findOwedMints(
  { database, chain }: OnChain,
  accountId: string,
): Promise<readonly { token: Stablecoin; units: bigint }[]> {
  const rows = await database.kysely
    .selectFrom('owed_mint')
    .select(['token', 'units'])
    .where('account_id', '=', accountId)
    .where('chain', '=', chain.name)
    .execute()
  return rows.map(({ token, units }) => ({ token: parseStablecoin(token), units }))
}

/** Mints what is owed and actually missing on the chain. @returns minted units; null while this is undecidable. */
export async function repayMint(
  { database, chain }: { database: Database; chain: Chain },
  { accountId, address, token, units, ids }: OwedMintsOfWallet,
): Promise<bigint | null> {
  const lacks = await missingOnChain({ database, chain }, { accountId, address })
  if (lacks === null) return null
  const lack = lacks.find((mint) => mint.token === token)?.units ?? 0n
  const due = lack < units ? lack : units
  if (due > 0n) await chain.mint([{ token, to: address, units: due }])
  await forgetMints(database, ids)
  return due
}

async function forgetMints(database: Connection, ids: readonly string[]): Promise<void> {
  await database.kysely.deleteFrom('owed_mint').where('id', 'in', ids).execute()
}
