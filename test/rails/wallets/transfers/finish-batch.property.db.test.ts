/** Transfers that end together end as they would one after the other: verdicts, rows, balances and budgets. */
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { held } from '../../../../src/books/ledger/accounts.ts'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { newId } from '../../../../src/core/base/ids.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import { createAccount } from '../../../../src/people/identity/accounts.ts'
import type { Address } from '../../../../src/providers/chain/port.ts'
import { openWallet } from '../../../../src/rails/wallets/open-wallet.ts'
import { findTransferOfDecision, insertTransfer } from '../../../../src/rails/wallets/store.ts'
import { finishTransfer } from '../../../../src/rails/wallets/transfers/finish-transfer.ts'
import {
  planTransfer,
  type TransferDependencies,
} from '../../../../src/rails/wallets/transfers/send-transfer.ts'
import { blockedCall, lockBalance } from '../../../blocked-call.ts'
import { onBothEngines } from '../../../engines.ts'
import {
  openFundedAccount,
  outsideAddress,
  reserveOrder,
  sendingDependencies,
  usdcBalance,
} from '../scene.ts'

const FUNDS = 1_000_000_000n

const plans = fc.array(
  fc.record({
    from: fc.integer({ min: 0, max: 2 }),
    /** Index of an account of ours; 3: outside. */
    to: fc.integer({ min: 0, max: 3 }),
    units: fc.bigInt({ min: 1n, max: 50n }),
    /** How it ends, perhaps told more than once, perhaps with two stories: the first one counts. */
    ends: fc.array(fc.constantFrom('confirmed' as const, 'failed' as const), { minLength: 1, maxLength: 3 }),
  }),
  { minLength: 2, maxLength: 24 },
)

onBothEngines('transfers that end at once', (database) => {
  let sending: TransferDependencies
  beforeAll(async () => {
    const chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    sending = sendingDependencies(database(), chain)
  })

  it('leave the books that their outcomes add up to', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (given) => {
        const accounts = await Promise.all([0, 1, 2].map(() => openFundedAccount(sending)))
        const expected = accounts.map(() => ({ available: FUNDS, held: 0n }))
        const transfers = []
        for (const { from, to, units, ends } of given) {
          const accountId = accounts[from]?.accountId ?? ''
          const destination: Address =
            to === from ? outsideAddress : (accounts[to]?.address ?? outsideAddress)
          const order = await reserveOrder(sending, { accountId, units, destination })
          const row = planTransfer(sending, order)(order.decisionId)
          await insertTransfer(database(), { accountId, decisionId: order.decisionId, row })
          const transfer = await findTransferOfDecision(database(), order.decisionId)
          if (transfer === undefined) throw new Error('the transfer was not written')
          transfers.push({ transfer, ends })
          const payer = expected[from]
          const payee = to === from ? undefined : expected[to]
          if (ends[0] === 'confirmed') {
            if (payer !== undefined) payer.available -= units
            if (payee !== undefined) payee.available += units
          }
        }
        // Calls of one account arrive in order, so the first story of a transfer is told first.
        await Promise.all(
          transfers.flatMap(({ transfer, ends }) =>
            ends.map((state) =>
              finishTransfer(
                sending,
                transfer,
                state === 'confirmed'
                  ? { state, transactionHash: `0x${'1'.repeat(64)}` }
                  : { state, failure: 'the operation reverted' },
              ),
            ),
          ),
        )
        expect(await Promise.all(accounts.map(({ accountId }) => usdcBalance(sending, accountId)))).toEqual(
          expected,
        )
        for (const { transfer, ends } of transfers)
          expect((await findTransferOfDecision(database(), transfer.decisionId))?.state).toBe(ends[0])
      }),
      { numRuns: 15 },
    )
  })

  it('end from many processes at once without waiting for each other in a circle', async () => {
    const accounts = await Promise.all(Array.from({ length: 6 }, () => openFundedAccount(sending)))
    const transfers = []
    for (let round = 0; round < 8; round += 1)
      for (const [index, { accountId }] of accounts.entries()) {
        const destination = accounts[(index + 1 + (round % 5)) % 6]?.address ?? outsideAddress
        const order = await reserveOrder(sending, { accountId, units: 1n, destination })
        const row = planTransfer(sending, order)(order.decisionId)
        await insertTransfer(database(), { accountId, decisionId: order.decisionId, row })
        const transfer = await findTransferOfDecision(database(), order.decisionId)
        if (transfer !== undefined) transfers.push(transfer)
      }
    const confirmed = { state: 'confirmed', transactionHash: `0x${'2'.repeat(64)}` } as const
    // Each call is a batch of its own order: a statement of everything, as two processes would send it.
    const shuffled = [transfers, [...transfers].reverse(), transfers.filter((_, index) => index % 2 === 1)]
    await Promise.all(
      shuffled.map((some) =>
        database().call(
          { name: 'transfer_finish_batch', text: 'select verdict from transfer_finish_batch($1)' },
          [
            JSON.stringify(
              some.map(({ id, decisionId, destination }) => ({
                transfer: id,
                decision: decisionId,
                chain: sending.chain.name,
                destination,
                is_confirmed: true,
                hash: confirmed.transactionHash,
                at: systemClock(),
              })),
            ),
          ],
        ),
      ),
    )
    for (const { accountId } of accounts)
      expect(await usdcBalance(sending, accountId)).toEqual({ available: FUNDS, held: 0n })
  })

  it('are credited to a wallet that was opened while their batch waited for a lock', async (test) => {
    test.skip(database().engine === 'pglite', 'one connection')
    const { accountId } = await openFundedAccount(sending)
    const at = systemClock()
    const payee = await createAccount(
      { database: database(), newId },
      { displayName: 'New', guest: true, at },
    )
    const origin = { kind: 'gateway' } as const
    const address = await sending.chain.walletAddress({ accountId: payee.id, origin })
    const requests: object[] = []
    for (const destination of [address, outsideAddress] as const) {
      const order = await reserveOrder(sending, { accountId, units: 7n, destination })
      const row = planTransfer(sending, order)(order.decisionId)
      await insertTransfer(database(), { accountId, decisionId: order.decisionId, row })
      requests.push({
        transfer: row.id,
        decision: order.decisionId,
        chain: sending.chain.name,
        destination: destination.toLowerCase(),
        is_confirmed: true,
        hash: `0x${'3'.repeat(64)}`,
        at,
      })
    }
    const batch = await database().transaction(async (connection) => {
      await lockBalance(connection, held(accountId, sending.chain.name))
      const started = database().call(
        { name: 'transfer_finish_batch', text: 'select verdict from transfer_finish_batch($1)' },
        [JSON.stringify(requests)],
      )
      await blockedCall(database())
      await openWallet(sending, { accountId: payee.id, at })
      return { started }
    })
    expect(await batch.started).toEqual([{ verdict: 'settled' }, { verdict: 'settled' }])
    expect(await usdcBalance(sending, payee.id)).toEqual({ available: 7n, held: 0n })
    expect(await usdcBalance(sending, accountId)).toEqual({ available: FUNDS - 14n, held: 0n })
  })
})
