/** Initial portfolio of a demo account: cash, and shares bought a quarter ago at the prices of that day. */

import { available, external } from '../../books/ledger/accounts.ts'
import { post } from '../../books/ledger/post.ts'
import type { NewId } from '../../core/base/ids.ts'
import { toShares, unitsForDown } from '../../core/money/shares.ts'
import type { Broker } from '../../providers/broker/port.ts'
import type { Connection } from '../../storage/database.ts'
import { BANK, BROKER } from './order.ts'
import { changePosition } from './positions.ts'

/** 500 USD in cents, and the cost of each holding. One of them pays a monthly dividend. */
const CASH_CENTS = 50_000n
const bought: readonly (readonly [symbol: string, cents: bigint])[] = [
  ['AAPL', 15_000n],
  ['O', 10_000n],
  ['VTI', 25_000n],
]

const HELD_MS = 90 * 86_400_000

/** Books the initial portfolio through the ledger; only with the sandbox broker. */
export async function openPortfolio(
  { database, broker, newId }: { database: Connection; broker: Broker; newId: NewId },
  { accountId, at: now }: { accountId: string; at: Date },
): Promise<void> {
  if (broker.name !== 'sandbox') return
  const at = new Date(now.getTime() - HELD_MS)
  const prices = await broker.history(
    bought.map(([symbol]) => symbol),
    [at],
  )
  const purchases = bought.flatMap(([symbol, cents]) => {
    const price = prices.get(symbol)?.[0]
    return price === undefined ? [] : [{ symbol, cents, units: unitsForDown(cents, price) }]
  })
  const deposit = purchases.reduce((sum, { cents }) => sum + cents, CASH_CENTS)
  const cash = available(accountId, BANK)
  const dollars = (units: bigint) => ({ asset: 'USD' as const, units })
  await post(database, {
    id: newId('tx', now),
    kind: 'deposit',
    reference: accountId,
    at,
    postings: [{ source: external(BANK), destination: cash, money: dollars(deposit) }],
  })
  for (const { symbol, cents, units } of purchases) {
    const shares = toShares(symbol, units)
    await post(database, {
      id: newId('tx', now),
      kind: 'fill',
      reference: accountId,
      at,
      postings: [
        { source: cash, destination: external(BROKER), money: dollars(cents) },
        { source: external(BROKER), destination: available(accountId, BROKER), money: shares },
      ],
    })
    const change = { accountId, symbol, qty: units, cash: cents, orderId: null, at }
    await changePosition(database, { ...change, id: newId('evt', now) })
  }
}
