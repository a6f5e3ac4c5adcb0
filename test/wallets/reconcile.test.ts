import { beforeAll, expect, it } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { createReconcile } from '../../src/jobs/reconcile.ts'
import { trialBalance } from '../../src/ledger/trial-balance.ts'
import { silentLog } from '../../src/log.ts'
import { createSimulatedChain } from '../../src/providers/chain/simulated.ts'
import type { Chain } from '../../src/providers/chain.ts'
import { levelChain } from '../../src/wallets/level-chain.ts'
import { findDrifts, reconcileWallet } from '../../src/wallets/reconcile.ts'
import { resumeTransfer } from '../../src/wallets/resume-transfer.ts'
import { type Sending, sendTransfer } from '../../src/wallets/send-transfer.ts'
import { findTransferOfDecision, lowerCase } from '../../src/wallets/store.ts'
import { transferOf } from '../contracts/chain.ts'
import { onBothEngines } from '../engines.ts'
import { booksOf, openFundedAccount, orderOf, sendingOn, stranger } from './scene.ts'

const full = 1_000_000_000n

onBothEngines('ledger and chain', (database) => {
  let chain: Chain
  let sending: Sending
  beforeAll(async () => {
    chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    sending = sendingOn(database(), chain)
  })
  const inSeconds = (seconds: number): Sending => ({
    ...sending,
    clock: () => new Date(systemClock().getTime() + seconds * 1_000),
  })
  const open = async () => {
    const { accountId, address } = await openFundedAccount(sending)
    return { accountId, address: lowerCase(address) }
  }

  it('credits what somebody put straight onto a wallet, once, though two processes see it', async () => {
    const wallet = await open()
    await chain.mint([{ token: 'USDC', to: wallet.address, units: 25n }])
    await reconcileWallet(sending, wallet)
    await reconcileWallet(inSeconds(2), wallet)
    expect(await booksOf(sending, wallet.accountId)).toEqual({ available: full, held: 0n })
    await Promise.all(
      [inSeconds(6), inSeconds(7), inSeconds(8)].map((later) => reconcileWallet(later, wallet)),
    )
    expect(await booksOf(sending, wallet.accountId)).toEqual({ available: full + 25n, held: 0n })
    await reconcileWallet(inSeconds(20), wallet)
    expect(await booksOf(sending, wallet.accountId)).toEqual({ available: full + 25n, held: 0n })
    expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
  })

  it('does not take money for a deposit that is on its way between wallets of ours', async () => {
    const [payer, payee] = [await open(), await open()]
    const order = await orderOf(sending, {
      accountId: payer.accountId,
      units: 9n,
      destination: payee.address,
    })
    const deaf: Chain = {
      ...chain,
      submit: async (operation) => {
        await chain.submit(operation)
        throw new Error('the connection was lost after the broadcast')
      },
    }
    await expect(sendTransfer({ ...sending, chain: deaf }, order)).rejects.toMatchObject({
      code: 'settlement_pending',
    })
    for (const later of [sending, inSeconds(30)])
      for (const wallet of [payer, payee]) expect(await reconcileWallet(later, wallet)).toEqual([])
    expect(await booksOf(sending, payee.accountId)).toEqual({ available: full, held: 0n })
    // A chain that kept what it has executed is not brought up for it either.
    expect(await levelChain({ database: database(), chain })).toBe(0)
    const transfer = await findTransferOfDecision(database(), order.decisionId)
    if (transfer !== undefined) await resumeTransfer(sending, transfer)
    expect(await booksOf(sending, payee.accountId)).toEqual({ available: full + 9n, held: 0n })
    expect(await chain.balanceOf('USDC', payee.address)).toBe(full + 9n)
  })

  it('says where money is missing, raises the alarm once, and never lowers a balance', async () => {
    const wallet = await open()
    await chain.submit(transferOf(wallet.accountId, stranger, 40n))
    expect(await reconcileWallet(sending, wallet)).toEqual([])
    expect(await reconcileWallet(inSeconds(6), wallet)).toEqual([
      { token: 'USDC', booked: full, onChain: full - 40n },
    ])
    expect(await booksOf(sending, wallet.accountId)).toEqual({ available: full, held: 0n })
    expect(await findDrifts(database())).toMatchObject([
      { ...wallet, token: 'USDC', booked: full, onChain: full - 40n },
    ])
    const alarms: object[] = []
    const log = { ...silentLog, error: (facts: object) => void alarms.push(facts) }
    const round = createReconcile({ ...inSeconds(12), log })
    await round(new AbortController().signal)
    await round(new AbortController().signal)
    expect(alarms.filter((facts) => 'address' in facts && facts.address === wallet.address)).toHaveLength(1)
    expect(await levelChain({ database: database(), chain })).toBe(1)
    expect(await chain.balanceOf('USDC', wallet.address)).toBe(full)
  })
})
