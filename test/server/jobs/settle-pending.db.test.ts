import { beforeAll, expect, it } from 'vitest'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../src/core/base/clock.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { type Chain, KEY_MISSING } from '../../../src/providers/chain/port.ts'
import {
  findTransferOfDecision,
  findTransferOfFunding,
  insertTransfer,
} from '../../../src/rails/wallets/store.ts'
import {
  planTransfer,
  sendTransfer,
  type TransferDependencies,
} from '../../../src/rails/wallets/transfers/send-transfer.ts'
import { settlePending } from '../../../src/server/jobs/settle-pending.ts'
import { onBothEngines } from '../../engines.ts'
import {
  openFundedAccount,
  reserveOrder,
  sendingDependencies,
  usdcBalance,
} from '../../rails/wallets/scene.ts'

const later = () => new Date(systemClock().getTime() + 60_000)
const running = new AbortController().signal

onBothEngines('the job that settles pending transfers', (database) => {
  let chain: Chain
  let sending: TransferDependencies
  beforeAll(async () => {
    chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    sending = sendingDependencies(database(), chain)
  })
  /** A transfer whose process got no answer from the chain. */
  const leftOpen = async (units: bigint) => {
    const { accountId } = await openFundedAccount(sending)
    const order = await reserveOrder(sending, { accountId, units })
    const deaf: Chain = {
      ...chain,
      submit: () => Promise.reject(new Error('there is no connection')),
    }
    await expect(sendTransfer({ ...sending, chain: deaf }, order)).rejects.toMatchObject({
      code: 'settlement_pending',
    })
    return { accountId, decisionId: order.decisionId }
  }
  const readState = async (decisionId: string) =>
    (await findTransferOfDecision(database(), decisionId))?.state

  it('skips transfers that a request may still be working on', async () => {
    const { decisionId } = await leftOpen(3n)
    await settlePending(sending, running)
    expect(await readState(decisionId)).toBe('reserved')
    await settlePending({ ...sending, clock: later }, running)
    expect(await readState(decisionId)).toBe('confirmed')
  })

  it('sends no burn for a payment that was never written, and gives its money back once that one has ended', async () => {
    const { accountId } = await openFundedAccount(sending)
    const before = await usdcBalance(sending, accountId)
    const { decisionId } = await reserveOrder(sending, { accountId, units: 5n })
    const burn = await reserveOrder(sending, { accountId, units: 7n })
    const fundingId = newId('fnd', systemClock())
    const row = planTransfer(sending, { ...burn, fundingId })(decisionId)
    await insertTransfer(database(), { accountId, decisionId, row })
    await database()
      .kysely.updateTable('reservation')
      .set({ decision_id: fundingId })
      .where('decision_id', '=', burn.decisionId)
      .execute()
    const readBurn = async () => (await findTransferOfFunding(database(), fundingId))?.state
    await settlePending({ ...sending, clock: later }, running)
    expect(await readBurn()).toBe('reserved')
    await releaseSpend(database(), { decisionId, at: systemClock() })
    await settlePending({ ...sending, clock: () => new Date(later().getTime() + 60_000) }, running)
    expect(await readBurn()).toBe('failed')
    expect(await usdcBalance(sending, accountId)).toEqual(before)
  })

  it('ignores a destination that was changed in the database', async () => {
    const { decisionId } = await leftOpen(13n)
    const forgedDestination = '0x00000000000000000000000000000000000bad13'
    await database()
      .kysely.updateTable('transfer')
      .set({ destination: forgedDestination })
      .where('decision_id', '=', decisionId)
      .execute()
    await settlePending({ ...sending, clock: later }, running)
    expect(await chain.readBalance('USDC', forgedDestination)).toBe(0n)
  })

  it('finishes the others when one cannot be finished, and releases orphaned reservations', async () => {
    const poisoned = await leftOpen(5n)
    const healthy = await leftOpen(7n)
    const { accountId } = await openFundedAccount(sending)
    const before = await usdcBalance(sending, accountId)
    await reserveOrder(sending, { accountId, units: 9n })
    const poison: Chain = {
      ...chain,
      awaitExecution: (transfer, waitMs) =>
        transfer.wallet.accountId === poisoned.accountId
          ? Promise.reject(new Error('unreadable'))
          : chain.awaitExecution(transfer, waitMs),
    }
    await settlePending({ ...sending, chain: poison, clock: later }, running)
    expect(await readState(healthy.decisionId)).toBe('confirmed')
    expect(await readState(poisoned.decisionId)).toBe('reserved')
    expect(await usdcBalance(sending, accountId)).toEqual(before)
  })

  it('runs on a transfer in one process at a time', async () => {
    const { accountId, decisionId } = await leftOpen(11n)
    const others = { ...sending, clock: later }
    await Promise.all([1, 2, 3].map(() => settlePending(others, running)))
    expect(await readState(decisionId)).toBe('confirmed')
    expect(await usdcBalance(sending, accountId)).toEqual({ available: 1_000_000_000n - 11n, held: 0n })
  })

  it('leaves a transfer at once to a process that has the key of its Safe', async () => {
    const { decisionId } = await leftOpen(17n)
    const at = later()
    const parts = { ...sending, clock: () => at }
    const keyless: Chain = {
      ...chain,
      submit: () =>
        Promise.reject(
          new Failure('provider_unavailable', 'no key', { reason: KEY_MISSING, retryAfter: 10 }),
        ),
    }
    await settlePending({ ...parts, chain: keyless }, running)
    expect(await readState(decisionId)).toBe('reserved')
    await settlePending({ ...parts, clock: () => new Date(at.getTime() + 1) }, running)
    expect(await readState(decisionId)).toBe('confirmed')
  })

  it('starts no other transfer after an abort', async () => {
    const { decisionId } = await leftOpen(13n)
    await settlePending({ ...sending, clock: later }, AbortSignal.abort())
    expect(await readState(decisionId)).toBe('reserved')
  })

  it('keeps the money of a broadcast transfer held when the chain refuses it now', async () => {
    const { accountId } = await openFundedAccount(sending)
    const order = await reserveOrder(sending, { accountId, units: 15n })
    const slow: Chain = { ...chain, awaitExecution: async () => ({ status: 'pending' }) }
    await sendTransfer({ ...sending, chain: slow }, order)
    const refusing: Chain = {
      ...chain,
      awaitExecution: async () => ({ status: 'absent' }),
      submit: async () => ({ status: 'refused', reason: 'paused', cause: 'transfer' }),
    }
    await settlePending({ ...sending, chain: refusing, clock: later }, running)
    expect(await usdcBalance(sending, accountId)).toEqual({ available: 1_000_000_000n - 15n, held: 15n })
    expect(await readState(order.decisionId)).toBe('settlement_pending')
  })

  it('updates the row from the ledger when the chain disagrees, and logs it', async () => {
    const { accountId, decisionId } = await leftOpen(17n)
    await releaseSpend(database(), { decisionId, at: systemClock() })
    const errors: string[] = []
    const log = { ...silentLog, error: (_facts: object, message: string) => errors.push(message) }
    await settlePending({ ...sending, log, clock: later }, running)
    expect(await readState(decisionId)).toBe('failed')
    expect(errors).toContain('the chain and the ledger disagree on a transfer')
    expect(await usdcBalance(sending, accountId)).toEqual({ available: 1_000_000_000n, held: 0n })
  })
})
