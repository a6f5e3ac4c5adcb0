/** Money that arrives beside wallets, in purses and escrows: it is in the books there, whoever pays it and by whatever way. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, expect, it } from 'vitest'
import { balances } from '../../../../src/books/ledger/balances.ts'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import type { Address, Chain } from '../../../../src/providers/chain/port.ts'
import type { Screening } from '../../../../src/providers/screening/port.ts'
import { purseKey } from '../../../../src/rails/buying/authorization.ts'
import { openPurse } from '../../../../src/rails/buying/store.ts'
import { listMovementReviews } from '../../../../src/rails/wallets/reconcile/movement-reviews.ts'
import type { ReconciliationDependencies } from '../../../../src/rails/wallets/reconcile/reconcile.ts'
import { decideMovementReview } from '../../../../src/rails/wallets/reconcile/release-deposits.ts'
import { signedCall } from '../../../../src/rails/wallets/relays/payment-call.ts'
import { relayPayment } from '../../../../src/rails/wallets/relays/relay-payment.ts'
import { buildEscrow, lowerCase } from '../../../../src/rails/wallets/store.ts'
import {
  sendTransfer,
  type TransferDependencies,
} from '../../../../src/rails/wallets/transfers/send-transfer.ts'
import { createWatchChain } from '../../../../src/server/jobs/watch-chain.ts'
import { onBothEngines } from '../../../engines.ts'
import { signAuthorization } from '../../../tools/transfers/signed-payments.ts'
import { openFundedAccount, reserveOrder, sendingDependencies } from '../scene.ts'

const full = 1_000_000_000n
const running = new AbortController().signal

onBothEngines('money beside wallets', (database) => {
  const stranger = privateKeyToAccount(generatePrivateKey())
  let chain: Chain
  let sending: TransferDependencies & ReconciliationDependencies
  let verdict: Screening
  let watch: (signal: AbortSignal) => Promise<number>
  beforeAll(async () => {
    chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    sending = { ...sendingDependencies(database(), chain), screening: { screen: async () => verdict } }
    await chain.mint([{ token: 'USDC', to: stranger.address, units: full }])
    watch = createWatchChain(sending)
    await watch(running)
  })
  /** An account with a purse and an escrow. */
  const open = async () => {
    verdict = { result: 'clear', lists: [] }
    const { accountId, address: home } = await openFundedAccount(sending)
    const { dataKey } = sending.settings
    const purse = lowerCase(purseKey(dataKey, accountId).address)
    const opened = { id: accountId, accountId, address: purse, home, chunk: 0n, at: systemClock() }
    await openPurse({ database: database(), dataKey }, opened)
    const escrow = lowerCase(await chain.walletAddress(buildEscrow(accountId, null)))
    await database()
      .kysely.updateTable('wallet')
      .set({ escrow, escrow_mac: 'mac' })
      .where('account_id', '=', accountId)
      .execute()
    return { accountId, purse, escrow, places: [`purse.${accountId}`, `escrow.${chain.name}`] as const }
  }
  const readBooked = async (accountId: string, place: string) =>
    (await balances(database(), accountId)).find((row) => row.place === place && row.asset === 'USDC')
      ?.available ?? 0n
  const signPayment = async (to: Address, value: bigint) => {
    const { nonce, signature } = await signAuthorization(chain, stranger, {
      to,
      value,
      validBefore: 2n ** 40n,
    })
    const payment = { nonce, signature, payer: stranger.address, destination: to, units: value } as const
    const times = { validAfter: 0n, validBefore: 2n ** 40n }
    return { ...payment, ...times, kind: 'authorization', token: 'USDC' } as const
  }
  const payAsStranger = async (to: Address, value: bigint) =>
    chain.signer.writeContract(signedCall(chain, await signPayment(to, value)))

  it('is booked once where another account of the gateway pays it', async () => {
    const payer = await openFundedAccount(sending)
    const { accountId, purse, escrow, places } = await open()
    for (const destination of [purse, escrow]) {
      const { accountId: from } = payer
      await sendTransfer(sending, await reserveOrder(sending, { accountId: from, units: 20n, destination }))
      // A second look at the same blocks books nothing again.
      for (let round = 0; round < 2; round += 1) await createWatchChain(sending)(running)
      await watch(running)
    }
    for (const place of places) expect(await readBooked(accountId, place)).toBe(20n)
    expect(await readBooked(payer.accountId, chain.name)).toBe(full - 40n)
  })

  it('is booked once where its own wallet pays it', async () => {
    const { accountId, purse, places } = await open()
    await sendTransfer(sending, await reserveOrder(sending, { accountId, units: 20n, destination: purse }))
    await watch(running)
    expect([await readBooked(accountId, places[0]), await readBooked(accountId, chain.name)]).toEqual([
      20n,
      full - 20n,
    ])
  })

  it('is booked once where a signed payment is relayed', async () => {
    const { accountId, purse, escrow, places } = await open()
    for (const destination of [purse, escrow]) {
      const { decisionId } = await reserveOrder(sending, { accountId, units: 9n })
      const payment = await signPayment(destination, 9n)
      await relayPayment(sending, { accountId, decisionId, payment, at: systemClock() })
      await watch(running)
    }
    for (const place of places) expect(await readBooked(accountId, place)).toBe(9n)
  })

  it('is booked where a stranger pays it, after the stranger was screened', async () => {
    const { accountId, purse, escrow, places } = await open()
    for (const destination of [purse, escrow]) await payAsStranger(destination, 7n)
    await watch(running)
    for (const place of places) expect(await readBooked(accountId, place)).toBe(7n)
    verdict = { result: 'review', lists: ['sandbox_review'] }
    await payAsStranger(escrow, 30n)
    await watch(running)
    expect(await readBooked(accountId, places[1])).toBe(7n)
    const page = { limit: 100, after: null }
    const [review] = (await listMovementReviews(database(), { status: 'open', page })).filter(
      (one) => one.accountId === accountId,
    )
    const { accountId: decidedBy } = await openFundedAccount(sending)
    const decision = {
      id: review?.id ?? '',
      decidedBy,
      status: 'released',
      reason: 'Known.',
      at: systemClock(),
    } as const
    await decideMovementReview({ ...sending, chains: { of: () => chain } }, decision, async () => {})
    expect(await readBooked(accountId, places[1])).toBe(37n)
  })

  it('is in no book on another chain, where nothing can be paid from it', async () => {
    const { accountId, purse, escrow, places } = await open()
    const elsewhere = { ...sending, chain: { ...chain, name: 'arbitrum-sepolia' as const } }
    const watchElsewhere = createWatchChain(elsewhere)
    await watchElsewhere(running)
    for (const destination of [purse, escrow]) await payAsStranger(destination, 5n)
    await watchElsewhere(running)
    for (const place of places) expect(await readBooked(accountId, place)).toBe(0n)
    expect(await readBooked(accountId, 'escrow.arbitrum-sepolia')).toBe(0n)
  })
})
