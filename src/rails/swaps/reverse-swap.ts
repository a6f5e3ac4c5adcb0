/**
 * Swaps whose block was replaced. The transfer to the desk is made again under its nonce, or reversed once it never can be; what had
 * arrived follows it.
 */
import { available, bridgePlace, external, held } from '../../books/ledger/accounts.ts'
import { lockUnits } from '../../books/ledger/balances.ts'
import { type Posting, post } from '../../books/ledger/post.ts'
import type { Stablecoin } from '../../core/money/money.ts'
import { minimum } from '../../core/money/shares.ts'
import type { Hex } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import { failBridge, updateBurn } from './bridge-orders.ts'
import { findSwap, findTransferOfSwap, reopenSwap, type SwapOrder, updateSwap } from './orders.ts'
import { isBridge } from './settle-bridge.ts'
import { readArrival, type SwapDependencies } from './settle-swap.ts'

/**
 * Takes back what a swap brought, as far as it is still available; reconciliation freezes the rest. Call it in the transaction that
 * reverses its transfer. Nothing for a transfer that is no swap's.
 */
export async function reverseSwap(
  { database, chain }: { database: Connection; chain: { readonly name: string } },
  { decisionId, at }: { readonly decisionId: string; readonly at: Date },
): Promise<void> {
  const swap = await findSwap(database, { decisionId })
  if (swap !== undefined && isBridge(swap)) return reverseBurn({ database, chain }, swap, at)
  if (swap?.state !== 'confirmed') return
  const { id, buy, sell, received, unsold } = swap
  if (!(await reopenSwap(database, id, { failure: 'a reorganization of the chain reversed it', at }))) return
  const taken = await takeBack(database, swap, chain.name, [
    [buy, received ?? 0n],
    [sell, unsold],
  ])
  if (taken.length === 0) return
  await post(database, { id: `reversal:${id}`, kind: 'swap_reversal', reference: id, at, postings: taken })
}

/**
 * Books the difference where a swap was made again in another transaction, at another price. Safe to repeat.
 * @param hash transaction that made it.
 */
export async function rebookSwap(
  parts: SwapDependencies,
  { decisionId, hash }: { readonly decisionId: string; readonly hash: Hex },
): Promise<void> {
  const { database, chain, clock } = parts
  const known = await findSwap(database, { decisionId })
  if (known !== undefined && isBridge(known)) {
    if (known.transactionHash !== hash)
      await updateBurn(database, known.id, { transactionHash: hash, at: clock() })
    return
  }
  if (known?.state !== 'confirmed' || known.transactionHash === hash) return
  const transfer = await findTransferOfSwap(database, known)
  if (transfer === undefined) return
  const arrived = await readArrival(parts, transfer, { buy: known.buy, hash })
  if (arrived === undefined) return
  const at = clock()
  await database.transaction(async (connection) => {
    const swap = await updateSwap(connection, known.id, { ...arrived, transactionHash: hash, at })
    if (swap === undefined) return
    const changes = [
      [known.buy, arrived.received - (known.received ?? 0n)],
      [known.sell, arrived.unsold - known.unsold],
    ] as const
    const more = changes.filter(([, units]) => units > 0n)
    const less = changes.flatMap(([asset, units]) => (units < 0n ? [[asset, -units] as const] : []))
    const postings = [
      ...more.map(([asset, units]) => ({
        source: external(chain.name),
        destination: available(known.accountId, chain.name),
        money: { asset, units },
      })),
      ...(await takeBack(connection, known, chain.name, less)),
    ]
    if (postings.length === 0) return
    await post(connection, {
      ...{ id: `swap:${known.id}:${hash}`, kind: 'swap', reference: known.id },
      ...{ at, postings },
    })
  })
}

/**
 * Takes back what was on its way: the burn can never be. What was minted before that stays: it is on its chain, and the attester who
 * vouched for the burn bears the loss.
 */
async function reverseBurn(
  { database, chain }: { database: Connection; chain: { readonly name: string } },
  { id, accountId, sell, units, toChain, bridge }: SwapOrder & { readonly toChain: string },
  at: Date,
): Promise<void> {
  const failure = 'a reorganization of the chain reversed it'
  if (!(await failBridge(database, id, { failure, at }))) return
  const money = { asset: sell, units: units - bridge.lacking }
  if (money.units === 0n) return
  const source = held(accountId, bridgePlace(toChain))
  await post(database, {
    ...{ id: `reversal:${id}`, kind: 'bridge_reversal', reference: id, at },
    postings: [{ source, destination: external(chain.name), money }],
  })
}

/** Postings that take money back, as far as it is there. */
async function takeBack(
  connection: Connection,
  { accountId }: Pick<SwapOrder, 'accountId'>,
  place: string,
  amounts: readonly (readonly [Stablecoin, bigint])[],
): Promise<Posting[]> {
  const postings: Posting[] = []
  // Sorted, as all locks of balances are.
  for (const [asset, wanted] of amounts.toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    const source = available(accountId, place)
    const units = minimum(await lockUnits(connection, source, asset), wanted)
    if (units > 0n) postings.push({ source, destination: external(place), money: { asset, units } })
  }
  return postings
}
