import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, expect, it } from 'vitest'
import { balances } from '../../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../../src/books/ledger/trial-balance.ts'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import type { Address, Chain } from '../../../../src/providers/chain/port.ts'
import { levelChain } from '../../../../src/rails/wallets/reconcile/level-chain.ts'
import {
  findDrifts,
  type ReconciliationDependencies,
  reconcileWallet,
} from '../../../../src/rails/wallets/reconcile/reconcile.ts'
import { findShortfalls } from '../../../../src/rails/wallets/reconcile/shortfall.ts'
import { signedCall } from '../../../../src/rails/wallets/relays/payment-call.ts'
import { findTransferOfDecision, lowerCase } from '../../../../src/rails/wallets/store.ts'
import { resumeTransfer } from '../../../../src/rails/wallets/transfers/resume-transfer.ts'
import {
  sendTransfer,
  type TransferDependencies,
} from '../../../../src/rails/wallets/transfers/send-transfer.ts'
import { createReconcile } from '../../../../src/server/jobs/reconcile.ts'
import { createWatchChain } from '../../../../src/server/jobs/watch-chain.ts'
import { buildTransfer } from '../../../contracts/chain.ts'
import { onBothEngines } from '../../../engines.ts'
import { signAuthorization } from '../../../tools/transfers/signed-payments.ts'
import {
  openFundedAccount,
  outsideAddress,
  reserveOrder,
  sendingDependencies,
  usdcBalance,
} from '../scene.ts'

const full = 1_000_000_000n
const running = new AbortController().signal

onBothEngines('ledger and chain', (database) => {
  const payer = privateKeyToAccount(generatePrivateKey())
  let chain: Chain
  let sending: TransferDependencies & ReconciliationDependencies
  let watch: (signal: AbortSignal) => Promise<number>
  beforeAll(async () => {
    chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    sending = sendingDependencies(database(), chain)
    await chain.mint([{ token: 'USDC', to: payer.address, units: full }])
    watch = createWatchChain(sending)
    await watch(running)
  })
  const inSeconds = (seconds: number) => ({
    ...sending,
    clock: () => new Date(systemClock().getTime() + seconds * 1_000),
  })
  const open = async () => {
    const { accountId, address } = await openFundedAccount(sending)
    return { accountId, address: lowerCase(address) }
  }
  /** Pays a wallet directly on chain, without the gateway. */
  const payStraight = async (to: Address, units: bigint) => {
    const {
      from,
      to: destination,
      value,
      validAfter,
      validBefore,
      ...signed
    } = await signAuthorization(chain, payer, { to, value: units })
    const payment = { ...signed, payer: from, destination, units: BigInt(value) }
    const times = { validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) }
    await chain.signer.writeContract(
      signedCall(chain, { ...payment, ...times, kind: 'authorization', token: 'USDC' }),
    )
  }
  const readFrozen = async (accountId: string) =>
    (await balances(database(), accountId)).find(({ asset }) => asset === 'USDC')?.frozen

  it('credits a direct deposit to a wallet once, with several gateways reading the chain', async () => {
    const wallet = await open()
    await payStraight(wallet.address, 25n)
    await Promise.all([watch(running), createWatchChain(sending)(running), watch(running)])
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full + 25n, held: 0n })
    await watch(running)
    await reconcileWallet(inSeconds(0), wallet)
    await reconcileWallet(inSeconds(20), wallet)
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full + 25n, held: 0n })
    expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
  })

  it('finds the log of a deposit behind the search cursor, and credits it once', async () => {
    const wallet = await open()
    const deaf = createWatchChain({ ...sending, chain: { ...chain, findTransfers: async () => [] } })
    await payStraight(wallet.address, 26n)
    await deaf(running)
    await watch(running)
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full, held: 0n })
    await reconcileWallet(sending, wallet)
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full, held: 0n })
    await Promise.all([6, 7, 8].map((seconds) => reconcileWallet(inSeconds(seconds), wallet)))
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full + 26n, held: 0n })
  })

  it('credits nothing for a balance without a log', async () => {
    const wallet = await open()
    const generous: Chain = {
      ...chain,
      readBalance: async (token, address) => (await chain.readBalance(token, address)) + 900n,
    }
    for (const seconds of [0, 6, 12])
      await reconcileWallet({ ...inSeconds(seconds), chain: generous }, wallet)
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full, held: 0n })
    expect(await findDrifts(database())).toContainEqual(
      expect.objectContaining({ ...wallet, booked: full, onChain: full + 900n }),
    )
    await reconcileWallet(inSeconds(18), wallet)
  })

  it('does not mistake a pending transfer between our wallets for a deposit', async () => {
    const [from, payee] = [await open(), await open()]
    const order = await reserveOrder(sending, {
      accountId: from.accountId,
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
    await watch(running)
    for (const later of [sending, inSeconds(30), inSeconds(60)])
      for (const wallet of [from, payee]) expect(await reconcileWallet(later, wallet)).toEqual([])
    expect(await usdcBalance(sending, payee.accountId)).toEqual({ available: full, held: 0n })
    // A chain that kept its executed operations is not restored because of it either.
    expect(await levelChain({ database: database(), chain })).toBe(0)
    const transfer = await findTransferOfDecision(database(), order.decisionId)
    if (transfer !== undefined) await resumeTransfer(sending, transfer)
    await watch(running)
    expect(await usdcBalance(sending, payee.accountId)).toEqual({ available: full + 9n, held: 0n })
    expect(await chain.readBalance('USDC', payee.address)).toBe(full + 9n)
  })

  it('books what an owner moved by their own operation, at once and once', async () => {
    const [wallet, payee] = [await open(), await open()]
    await chain.submit(buildTransfer(wallet.accountId, payee.address, 40n))
    await Promise.all([watch(running), createWatchChain(sending)(running)])
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full - 40n, held: 0n })
    expect(await usdcBalance(sending, payee.accountId)).toEqual({ available: full + 40n, held: 0n })
    for (const seconds of [0, 6, 12])
      for (const each of [wallet, payee]) expect(await reconcileWallet(inSeconds(seconds), each)).toEqual([])
    expect(await readFrozen(wallet.accountId)).toBe(0n)
    expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
  })

  it('freezes the shortfall on the chain, raises the alarm once, and unfreezes it when it is back', async () => {
    const wallet = await open()
    let lost = 40n
    const lossy: Chain = {
      ...chain,
      readBalance: async (token, address) => {
        const units = await chain.readBalance(token, address)
        return token === 'USDC' && lowerCase(address) === wallet.address ? units - lost : units
      },
    }
    const at = (seconds: number) => ({ ...inSeconds(seconds), chain: lossy })
    expect(await reconcileWallet(at(0), wallet)).toEqual([])
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full, held: 0n })
    expect(await reconcileWallet(at(6), wallet)).toEqual([
      { token: 'USDC', booked: full, onChain: full - 40n },
    ])
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full - 40n, held: 0n })
    expect(await findShortfalls(database())).toMatchObject([{ ...wallet, frozen: 40n, uncovered: 0n }])
    lost = 50n
    const alarms: object[] = []
    const log = { ...silentLog, error: (facts: object) => void alarms.push(facts) }
    const round = createReconcile({ ...at(12), log })
    for (let times = 0; times < 3; times += 1) await round(running)
    const later = createReconcile({ ...at(20), log })
    for (let times = 0; times < 3; times += 1) await later(running)
    expect(alarms.filter((facts) => 'address' in facts && facts.address === wallet.address)).toHaveLength(1)
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full - 50n, held: 0n })
    lost = 0n
    for (const seconds of [30, 36]) await reconcileWallet(at(seconds), wallet)
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: full, held: 0n })
    expect(await findShortfalls(database())).toEqual([])
    expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
  })

  it('freezes a shortfall despite pending transfers, except what they may have moved themselves', async () => {
    const wallet = await open()
    await reserveOrder(sending, { accountId: wallet.accountId, units: 300n })
    const order = await reserveOrder(sending, { accountId: wallet.accountId, units: full - 400n })
    const deaf: Chain = {
      ...chain,
      submit: async (operation) => {
        await chain.submit(operation)
        throw new Error('the connection was lost after the broadcast')
      },
    }
    await sendTransfer({ ...sending, chain: deaf }, order).catch(() => undefined)
    // 400 are left on the chain, 300 of them held; the owner takes 250.
    await chain.submit(buildTransfer(wallet.accountId, outsideAddress, 250n))
    for (const seconds of [0, 6]) await reconcileWallet(inSeconds(seconds), wallet)
    expect(await usdcBalance(sending, wallet.accountId)).toEqual({ available: 0n, held: full - 100n })
    expect(await findShortfalls(database())).toMatchObject([{ ...wallet, frozen: 100n, uncovered: 150n }])
  })

  it('reverses what a reorganization removed, even when the detecting processes died', async () => {
    const { accountId } = await open()
    await sendTransfer(sending, await reserveOrder(sending, { accountId, units: 7n }))
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full - 7n, held: 0n })
    await watch(running)
    const processAt = (seconds: number, changes: Partial<Chain>) =>
      createWatchChain({ ...inSeconds(seconds), chain: { ...chain, ...changes } })
    const answerWith = (status: 'pending' | 'absent') => async () => ({ status })
    await processAt(0, { awaitExecution: answerWith('pending'), areBlocksReplaced: async () => true })(
      running,
    )
    // The next process moves the search cursor past the transfer, and dies as well.
    await payStraight(outsideAddress, 1n)
    await processAt(120, { awaitExecution: answerWith('pending') })(running)
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full - 7n, held: 0n })
    await processAt(240, { awaitExecution: answerWith('absent') })(running)
    expect(await usdcBalance(sending, accountId)).toEqual({ available: full, held: 0n })
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })

  it('repeats and reverses nothing for its absence on a chain that replaced the one of the books', async () => {
    const { accountId } = await open()
    await sendTransfer(sending, await reserveOrder(sending, { accountId, units: 7n }))
    await watch(running)
    const booked = { available: full - 7n, held: 0n }
    // The node restarts empty while settlements are verified; the round began on the old chain.
    for (const seconds of [0, 240]) {
      let identity = await chain.identity()
      const submitted: unknown[] = []
      const replaced: Chain = {
        ...chain,
        areBlocksReplaced: async () => true,
        identity: async () => identity,
        awaitExecution: async () => {
          identity = 'another chain'
          return { status: 'absent' }
        },
        submit: async (operation) => {
          submitted.push(operation)
          return { status: 'refused', reason: 'not reached', cause: 'transfer' }
        },
      }
      await createWatchChain({ ...inSeconds(seconds), chain: replaced })(running)
      expect(submitted).toEqual([])
      expect(await usdcBalance(sending, accountId)).toEqual(booked)
    }
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })
})
