/** The failure of a spend for which the money is not there: what is missing where, and where else the account has money. */

import { balances } from '../../books/ledger/balances.ts'
import type { SpendVerdict } from '../../books/spending/reserve.ts'
import { BANK } from '../../books/spending/sources.ts'
import { Failure } from '../../core/failures/failure.ts'
import { isChainName } from '../../core/money/chains.ts'
import { decimalOf } from '../../core/money/money.ts'
import { decimalOfValue, nameOfValue } from '../../core/money/shares.ts'
import { type Context, requireCaller } from '../context.ts'
import type { SpendPlan } from '../tool.ts'

export async function insufficientFunds(
  context: Context,
  spending: SpendPlan,
  { available, decisionId, replayed }: Extract<SpendVerdict, { verdict: 'insufficient_funds' }>,
): Promise<Failure> {
  const { place, holding, money, fundsHint } = spending
  const chain = place !== null && isChainName(place) ? place : null
  const asset = nameOfValue(available)
  const booked = await balances(context.database, requireCaller(context).account.id)
  const elsewhere =
    holding !== undefined
      ? []
      : booked.flatMap((balance) => {
          const isHere = balance.place === place && balance.asset === asset
          const isSpendable = isChainName(balance.place) || balance.place === BANK
          if (isHere || !isSpendable || balance.available <= 0n) return []
          return [
            {
              chain: isChainName(balance.place) ? balance.place : null,
              asset: balance.asset,
              available: decimalOf({ asset: balance.asset, units: balance.available }),
            },
          ]
        })
  const owner = holding !== undefined ? 'portfolio' : chain === null ? 'account' : 'wallet'
  const where = chain === null ? '' : ` on ${chain}`
  const needed = decimalOfValue(holding ?? money)
  return new Failure(
    'insufficient_funds',
    `The ${owner} has ${decimalOfValue(available)} ${asset}${where} available; ${needed} needed.`,
    {
      decisionId,
      isReplayed: replayed,
      asset,
      chain,
      available: decimalOfValue(available),
      elsewhere,
      hint:
        fundsHint ??
        'Tell the owner, who adds funds or chooses other money of `elsewhere`; then use a new idempotency key. Debts of the account are collected first.',
    },
  )
}
