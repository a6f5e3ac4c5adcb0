import { beforeAll, expect, it } from 'vitest'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../src/core/base/clock.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import { findTransferOfDecision } from '../../../src/rails/wallets/store.ts'
import { findRepeatedTransfer } from '../../../src/rails/wallets/transfers/find-repeated-transfer.ts'
import { releaseUnwrittenTransfers } from '../../../src/rails/wallets/transfers/release-unwritten.ts'
import { resumeTransfer } from '../../../src/rails/wallets/transfers/resume-transfer.ts'
import {
  sendTransfer,
  type TransferDependencies,
} from '../../../src/rails/wallets/transfers/send-transfer.ts'
import { buildTransfer } from '../../contracts/chain.ts'
import { onBothEngines } from '../../engines.ts'
import { openFundedAccount, outsideAddress, reserveOrder, sendingDependencies, usdcBalance } from './scene.ts'

const full = 1_000_000_000n

onBothEngines('a transfer', (database) => {
  let chain: Chain
  let sending: TransferDependencies
  beforeAll(async () => {
    chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    sending = sendingDependencies(database(), chain)
  })
  const open = () => openFundedAccount(sending)
  const requireTransfer = async (decisionId: string) => {
    const transfer = await findTransferOfDecision(database(), decisionId)
    if (transfer === undefined) throw new Error('the decision has no transfer')
    return transfer
  }

  it('moves the money on the chain and in the books, once', async () => {
    const { accountId, address } = await open()
    const order = await reserveOrder(sending, { accountId, units: 7n })
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full - 7n, held: 7n })
    const sent = await sendTransfer(sending, order)
    expect(sent.status).toBe('confirmed')
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full - 7n, held: 0n })
    expect(await chain.readBalance('USDC', address)).toBe(full - 7n)
    expect(await findRepeatedTransfer(sending, order.decisionId)).toEqual(sent)
  })

  it('credits a wallet of the gateway at once, so that chain and books stay equal for both', async () => {
    const [payer, payee] = [await open(), await open()]
    const order = await reserveOrder(sending, {
      accountId: payer.accountId,
      units: 9n,
      destination: payee.address,
    })
    await sendTransfer(sending, order)
    expect(await usdcBalance(sending, payee.accountId)).toEqual({ available: full + 9n, held: 0n })
    expect(await chain.readBalance('USDC', payee.address)).toBe(full + 9n)
  })

  it('releases the money when the chain refuses, and returns the same error again', async () => {
    const { accountId, address } = await open()
    const drain = await reserveOrder(sending, { accountId, units: full })
    await releaseSpend(database(), { decisionId: drain.decisionId, at: systemClock() })
    // The chain has less than the books: a drift that must not cost any owner money.
    await chain.submit(buildTransfer(accountId, outsideAddress, full))
    expect(await chain.readBalance('USDC', address)).toBe(0n)
    const order = await reserveOrder(sending, { accountId, units: 5n })
    await expect(sendTransfer(sending, order)).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full, held: 0n })
    await expect(findRepeatedTransfer(sending, order.decisionId)).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
  })

  it('keeps the money held while the outcome is unknown; resuming pays once', async () => {
    const { accountId, address } = await open()
    const order = await reserveOrder(sending, { accountId, units: 11n })
    const lossy: Chain = {
      ...chain,
      submit: async (transfer) => {
        await chain.submit(transfer)
        throw new Error('the connection was lost after the broadcast')
      },
    }
    await expect(sendTransfer({ ...sending, chain: lossy }, order)).rejects.toMatchObject({
      code: 'settlement_pending',
      members: { retryAfter: 5 },
    })
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full - 11n, held: 11n })
    expect(await findRepeatedTransfer(sending, order.decisionId)).toBeNull()
    const transfer = await requireTransfer(order.decisionId)
    await Promise.all([resumeTransfer(sending, transfer), resumeTransfer(sending, transfer)])
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full - 11n, held: 0n })
    expect(await chain.readBalance('USDC', address)).toBe(full - 11n)
    expect(await findRepeatedTransfer(sending, order.decisionId)).toMatchObject({ status: 'confirmed' })
  })

  it('is submitted by the resuming caller when the chain never received it', async () => {
    const { accountId, address } = await open()
    const order = await reserveOrder(sending, { accountId, units: 13n })
    const dead: Chain = {
      ...chain,
      submit: () => Promise.reject(new Error('there is no connection')),
    }
    await expect(sendTransfer({ ...sending, chain: dead }, order)).rejects.toMatchObject({
      code: 'settlement_pending',
    })
    await resumeTransfer(sending, await requireTransfer(order.decisionId))
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full - 13n, held: 0n })
    expect(await chain.readBalance('USDC', address)).toBe(full - 13n)
  })

  it('returns settlement_pending on a slow chain, and confirmed once it is mined', async () => {
    const { accountId } = await open()
    const order = await reserveOrder(sending, { accountId, units: 17n })
    const slow: Chain = { ...chain, awaitExecution: async () => ({ status: 'pending' }) }
    const sent = await sendTransfer({ ...sending, chain: slow }, order)
    expect(sent.status).toBe('settlement_pending')
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full - 17n, held: 17n })
    expect(await findRepeatedTransfer(sending, order.decisionId)).toEqual(sent)
    await resumeTransfer(sending, await requireTransfer(order.decisionId))
    expect(await findRepeatedTransfer(sending, order.decisionId)).toEqual({ ...sent, status: 'confirmed' })
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full - 17n, held: 0n })
  })

  it('is abandoned once its validity has expired, and not before', async () => {
    const { accountId } = await open()
    const order = await reserveOrder(sending, { accountId, units: 15n })
    const dead: Chain = { ...chain, submit: () => Promise.reject(new Error('there is no connection')) }
    await expect(sendTransfer({ ...sending, chain: dead }, order)).rejects.toMatchObject({
      code: 'settlement_pending',
    })
    const transfer = await requireTransfer(order.decisionId)
    const refusing: Chain = {
      ...chain,
      submit: async () => ({ status: 'refused', reason: 'paused', cause: 'transfer' }),
    }
    await resumeTransfer({ ...sending, chain: refusing }, transfer)
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full - 15n, held: 15n })
    const late = () => new Date(transfer.validUntil.getTime() + 61_000)
    await resumeTransfer({ ...sending, clock: late }, transfer)
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full, held: 0n })
    await expect(findRepeatedTransfer(sending, order.decisionId)).rejects.toMatchObject({
      members: { isFinal: true },
    })
  })

  it('is never sent after its reservation was released, and an orphaned reservation is released', async () => {
    const { accountId, address } = await open()
    const order = await reserveOrder(sending, { accountId, units: 19n })
    await releaseUnwrittenTransfers(sending, new Date(systemClock().getTime() + 1))
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full, held: 0n })
    await expect(sendTransfer(sending, order)).rejects.toMatchObject({ code: 'conflict' })
    await expect(findRepeatedTransfer(sending, order.decisionId)).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
    expect(await chain.readBalance('USDC', address)).toBe(full)
  })

  it('leaves balanced books', async () => {
    expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
  })
})
