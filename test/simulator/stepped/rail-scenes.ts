/** Scenes of purses, payments and orders, in the terms of stepped-scenes.ts. */
import { external } from '../../../src/books/ledger/accounts.ts'
import { balances, readSystemBalance } from '../../../src/books/ledger/balances.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import type { OrderRow } from '../../../src/books/spending/spend-request.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import type { OrderReport } from '../../../src/providers/broker/port.ts'
import { insertPurchase, openPurse } from '../../../src/rails/buying/store.ts'
import { bookFirstReport } from '../../../src/rails/investing/book-report.ts'
import { findOrder } from '../../../src/rails/investing/store.ts'
import { beginPurchase } from '../../../src/rails/selling/payments/purchases.ts'
import type { NewPayment } from '../../../src/rails/selling/payments/store.ts'
import { noon, place } from '../../books/spending/scene.ts'
import { signedPurchase } from '../../rails/buying/signed-purchase.ts'
import { fund } from '../../rails/cards/scene.ts'
import type { Task } from './conductor.ts'
import {
  ADA,
  adaHerself,
  adasKey,
  KEY,
  listVerdicts,
  openKeys,
  openOwner,
  planSpend,
  type Scene,
  unless,
} from './scenes.ts'

const purse: Scene = {
  claim: 'a purchase that is given up as its money reaches the purse leaves all money, and holds none',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openKeys(database, KEY)
    const address = `0x${'1'.repeat(40)}` as const
    const opened = { id: KEY, accountId: ADA, address, home: address, chunk: 20n, at: noon }
    await openPurse({ database, dataKey: Buffer.alloc(32, 1) }, opened)
    const changes = { operation: 'purchases.buy', purse: { id: KEY, chunk: 20n } }
    await reserveSpend(database, planSpend(adasKey, 5n, 'dec_1', changes))
    await insertPurchase(database, signedPurchase({ ...adasKey, decisionId: 'dec_1', address, units: 5n }))
    await reserveSpend(database, planSpend(adaHerself, 60n, 'dec_2'))
    const fill: Task = async (session) => {
      const [row] = await session.call<{ verdict: string }>(purseFill, ['dec_1', KEY, noon])
      return row?.verdict
    }
    return {
      tasks: [fill, fill, (session) => releaseSpend(session, { decisionId: 'dec_1', at: noon })],
      findViolation: async (answers) => {
        const rows = await balances(database, ADA)
        const sum = (name: 'available' | 'held') => rows.reduce((total, row) => total + row[name], 0n)
        return unless(
          sum('available') === 940n && sum('held') === 60n,
          `${listVerdicts(answers)}: ${sum('available')} are available and ${sum('held')} held`,
        )
      },
    }
  },
}

const purseFill = { name: 'test_purse_fill', text: 'select verdict from purse_fill($1, $2, $3)' }

const payment: Scene = {
  claim: 'an idempotency key names one payment or one spend',
  prepare: async (database) => {
    await openOwner(database, ADA, 1_000n)
    await openKeys(database, KEY)
    const idempotency = { principal: KEY, key: 'one', fingerprint: 'same' }
    const pay = (id: string): Task => {
      return (session) =>
        beginPurchase(session, idempotency, buildPayment(id), noon).catch((error: unknown) => {
          if (error instanceof Failure && error.code === 'idempotency_in_progress') return error.code
          throw error
        })
    }
    return {
      tasks: [
        pay('pay_1'),
        pay('pay_2'),
        (session) => reserveSpend(session, planSpend(adasKey, 60n, 'dec_1', { idempotency })),
      ],
      findViolation: async (answers) => {
        const verdicts = listVerdicts(answers)
        const isOne =
          verdicts === 'false, fingerprint_mismatch, true' ||
          verdicts === 'allow, idempotency_in_progress, idempotency_in_progress'
        return unless(isOne, `two payments and a spend under one key ended as ${verdicts}`)
      },
    }
  },
}

function buildPayment(id: string): NewPayment {
  return {
    ...{ id, chain: place, network: place, token: '0xa', payer: '0xb', pay_to: '0xc', nonce: `0x${id}` },
    ...{ since_block: null, identifier: null, request: 'request', signature_hash: id, operation: 'x402.fx' },
    scheme: 'exact',
    ...{ receipt_header: 'X-PAYMENT-RESPONSE', asset: 'USDC', units: 60n, answer: {} },
    valid_before: new Date(noon.getTime() + 300_000),
  }
}

const order: Scene = {
  claim: 'reports of an order that reach several gateways book each fill once',
  prepare: async (database) => {
    await openOwner(database, ADA, 1n)
    await fund(database, ADA, { USD: '500' })
    const row: OrderRow = {
      ...{ id: 'ord_1', clientOrderId: null, asked: 'hash', symbol: 'VTI', submittedAt: noon },
      ...{ notional: 100_00n, qty: null, limitPrice: null, referencePrice: 100_000_000_000n },
      side: 'buy',
      type: 'market',
    }
    const money = { asset: 'USD', units: 100_00n } as const
    const changes = { operation: 'investing.order', money, place: 'bank', order: row }
    await reserveSpend(database, planSpend(adaHerself, 100_00n, 'dec_1', changes))
    const tell = (status: OrderReport['status'], filledQty: bigint): Task => {
      // A share costs 100 dollars.
      const filled = { filledQty, filledValue: filledQty * 10n ** 11n, filledAt: noon, reason: null }
      const report = { id: 'ord_1', symbol: 'VTI', side: 'buy', status, ...filled } as const
      return async (session) => {
        const stored = await findOrder(session, { accountId: ADA, id: 'ord_1' })
        if (stored === undefined) throw new Error('the order is not stored')
        const dependencies = { database: session, newId, clock: () => noon, log: silentLog }
        return (await bookFirstReport(dependencies, stored, { report, askedAt: noon })).status
      }
    }
    return {
      tasks: [
        tell('partially_filled', 600_000_000n),
        tell('filled', 1_000_000_000n),
        tell('partially_filled', 600_000_000n),
      ],
      findViolation: async (answers) => {
        const [cash] = (await balances(database, ADA)).filter(({ asset }) => asset === 'USD')
        const paid = await readSystemBalance(database, external('broker'), 'USD')
        return unless(
          cash?.available === 400_00n && cash.held === 0n && paid === 100_00n,
          `${answers.join(', ')}: ${cash?.available} cents are available and ${cash?.held} held, ${paid} paid`,
        )
      },
    }
  },
}

/** Scenes by name. */
export const railScenes = { purse, payment, order } as const
