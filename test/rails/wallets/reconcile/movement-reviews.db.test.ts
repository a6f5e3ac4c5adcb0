/** Deposits on the chain from senders that AML does not clear: kept, never spendable, released or blocked once. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, expect, it } from 'vitest'
import { trialBalance } from '../../../../src/books/ledger/trial-balance.ts'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import type { Address, Chain } from '../../../../src/providers/chain/port.ts'
import type { Screening } from '../../../../src/providers/screening/port.ts'
import { findDifferingWallets } from '../../../../src/rails/wallets/reconcile/find-differing-wallets.ts'
import { listMovementReviews } from '../../../../src/rails/wallets/reconcile/movement-reviews.ts'
import {
  findDrifts,
  type ReconciliationDependencies,
  reconcileWallet,
} from '../../../../src/rails/wallets/reconcile/reconcile.ts'
import {
  decideMovementReview,
  screenKeptDeposits,
} from '../../../../src/rails/wallets/reconcile/release-deposits.ts'
import { freeze } from '../../../../src/rails/wallets/reconcile/shortfall.ts'
import { signedCall } from '../../../../src/rails/wallets/relays/payment-call.ts'
import { lowerCase } from '../../../../src/rails/wallets/store.ts'
import type { TransferDependencies } from '../../../../src/rails/wallets/transfers/send-transfer.ts'
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

onBothEngines('deposits that AML stops', (database) => {
  const payer = privateKeyToAccount(generatePrivateKey())
  let chain: Chain
  let sending: TransferDependencies & ReconciliationDependencies
  /** Verdict on every sender; undefined: the screening does not answer. */
  let verdict: Screening | undefined
  const screening = {
    screen: async () => {
      if (verdict === undefined) throw new Error('the screening does not answer')
      return verdict
    },
  }
  let watch: (signal: AbortSignal) => Promise<number>
  beforeAll(async () => {
    chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    sending = { ...sendingDependencies(database(), chain), screening }
    await chain.mint([{ token: 'USDC', to: payer.address, units: full }])
    watch = createWatchChain(sending)
    await watch(running)
  })
  const open = async () => {
    const { accountId, address } = await openFundedAccount(sending)
    return { accountId, address: lowerCase(address) }
  }
  const pay = async (to: Address, value: bigint) => {
    const { nonce, signature } = await signAuthorization(chain, payer, { to, value, validBefore: 2n ** 40n })
    const payment = { nonce, signature, payer: payer.address, destination: to, units: value } as const
    const times = { validAfter: 0n, validBefore: 2n ** 40n }
    await chain.signer.writeContract(
      signedCall(chain, { ...payment, ...times, kind: 'authorization', token: 'USDC' }),
    )
  }
  /** A wallet with the demo money that got a deposit of 25 units, with this verdict on its sender. */
  const payIn = async (given: Screening | undefined) => {
    verdict = given
    const wallet = await open()
    await pay(wallet.address, 25n)
    await watch(running)
    return wallet
  }
  const spendable = async ({ accountId }: { accountId: string }) =>
    (await usdcBalance(sending, accountId)).available
  const findReview = async (
    { accountId }: { accountId: string },
    status: 'open' | 'released' | 'blocked',
  ) => {
    const page = { limit: 100, after: null }
    return (await listMovementReviews(database(), { status, page })).find(
      (one) => one.accountId === accountId,
    )
  }
  /** Compares the wallet again and again, long enough for any difference to count. */
  const compareFor = async (wallet: { accountId: string; address: Address }) => {
    for (const seconds of [0, 6, 12])
      await reconcileWallet(
        { ...sending, clock: () => new Date(systemClock().getTime() + seconds * 1_000) },
        wallet,
      )
  }
  const decide = async (id: string, status: 'released' | 'blocked', parts = sending) => {
    const { accountId: decidedBy } = await open()
    const decision = { id, decidedBy, status, reason: 'The payer was shown.', at: systemClock() }
    return decideMovementReview({ ...parts, chains: { of: () => parts.chain } }, decision, async () => {})
  }

  it('are kept without being booked, and are no difference of books and chain', async () => {
    const wallet = await payIn({ result: 'review', lists: ['sandbox_review'] })
    expect(await spendable(wallet)).toBe(full)
    expect(await findReview(wallet, 'open')).toMatchObject({
      money: { asset: 'USDC', units: 25n },
      sender: payer.address.toLowerCase(),
      chain: chain.name,
      lists: ['sandbox_review'],
    })
    // A later, clear verdict does not credit it: the review stands.
    verdict = { result: 'clear', lists: [] }
    await compareFor(wallet)
    await watch(running)
    expect(await spendable(wallet)).toBe(full)
    expect((await findDrifts(database())).filter(({ accountId }) => accountId === wallet.accountId)).toEqual(
      [],
    )
    expect(await findDifferingWallets(sending, [wallet])).toEqual([])
    // Other deposits are found beside it.
    await pay(wallet.address, 3n)
    await watch(running)
    expect(await spendable(wallet)).toBe(full + 3n)
    expect(await findDifferingWallets(sending, [wallet])).toEqual([])
  })

  it('are credited once when released, and never after that', async () => {
    const wallet = await payIn({ result: 'review', lists: ['sandbox_review'] })
    const { id = '' } = (await findReview(wallet, 'open')) ?? {}
    const verdicts = await Promise.allSettled([
      decide(id, 'released'),
      decide(id, 'released'),
      decide(id, 'blocked'),
    ])
    const winner = verdicts.findIndex(({ status }) => status === 'fulfilled')
    expect(verdicts.filter(({ status }) => status === 'rejected')).toMatchObject([
      { reason: { code: 'conflict' } },
      { reason: { code: 'conflict' } },
    ])
    expect(await spendable(wallet)).toBe(winner === 2 ? full : full + 25n)
    await compareFor(wallet)
    expect(await findDifferingWallets(sending, [wallet])).toEqual([])
    expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
  })

  it('are never released by their receiver, or once the chain has lost them', async () => {
    const wallet = await payIn({ result: 'review', lists: ['sandbox_review'] })
    const { id = '' } = (await findReview(wallet, 'open')) ?? {}
    const decision = { id, status: 'released', reason: 'Mine.', at: systemClock() } as const
    const parts = { ...sending, chains: { of: () => chain } }
    await expect(
      decideMovementReview(parts, { ...decision, decidedBy: wallet.accountId }, async () => {}),
    ).rejects.toMatchObject({ code: 'conflict' })
    const forgetful = { ...sending, chain: { ...chain, transaction: async () => undefined } }
    await expect(decide(id, 'released', forgetful)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('does not hold this deposit'),
    })
    expect(await spendable(wallet)).toBe(full)
    await decide(id, 'released')
    expect(await spendable(wallet)).toBe(full + 25n)
  })

  it('are blocked at once by a list, without a person', async () => {
    const wallet = await payIn({ result: 'blocked', lists: ['sandbox_sanctions'] })
    expect(await findReview(wallet, 'blocked')).toMatchObject({ decidedBy: null })
    await compareFor(wallet)
    expect(await spendable(wallet)).toBe(full)
  })

  it('wait for a screening that does not answer, and follow its verdict', async () => {
    const [later, bad] = [await payIn(undefined), await payIn(undefined)]
    expect(await findReview(later, 'open')).toMatchObject({ lists: ['screening_unavailable'] })
    expect(await screenKeptDeposits(sending, running)).toBe(2)
    expect(await spendable(later)).toBe(full)
    const { id = '' } = (await findReview(bad, 'open')) ?? {}
    await decide(id, 'blocked')
    verdict = { result: 'clear', lists: ['ofac'] }
    await Promise.all([screenKeptDeposits(sending, running), screenKeptDeposits(sending, running)])
    expect(await spendable(later)).toBe(full + 25n)
    expect(await spendable(bad)).toBe(full)
    expect(await findReview(later, 'released')).toMatchObject({ decidedBy: null, lists: ['ofac'] })
    expect(await screenKeptDeposits(sending, running)).toBe(0)
  })

  it('are not credited after the owner moved the tokens away, by an administrator or by the screening', async () => {
    const reviewed = await payIn({ result: 'review', lists: ['sandbox_review'] })
    const unscreened = await payIn(undefined)
    for (const { accountId } of [reviewed, unscreened]) {
      // Everything that is booked is promised, so that the withdrawal finds nothing that it could be booked from.
      await reserveOrder(sending, { accountId, units: full })
      await chain.submit(buildTransfer(accountId, outsideAddress, 25n))
    }
    await watch(running)
    const { id = '' } = (await findReview(reviewed, 'open')) ?? {}
    await expect(decide(id, 'released')).rejects.toMatchObject({ code: 'conflict' })
    verdict = { result: 'clear', lists: [] }
    expect(await screenKeptDeposits(sending, running)).toBe(0)
    expect(await findReview(unscreened, 'open')).toMatchObject({ lists: ['not_on_chain'] })
    for (const wallet of [reviewed, unscreened]) expect(await spendable(wallet)).toBe(0n)
    await decide(id, 'blocked')
  })

  it('are credited only as far as the chain has their tokens, however many are released at once', async () => {
    const wallet = await payIn({ result: 'review', lists: ['sandbox_review'] })
    for (const given of [{ result: 'review', lists: ['sandbox_review'] } as const, undefined, undefined]) {
      verdict = given
      await pay(wallet.address, 25n)
      await watch(running)
    }
    await reserveOrder(sending, { accountId: wallet.accountId, units: full })
    await chain.submit(buildTransfer(wallet.accountId, outsideAddress, 75n))
    await watch(running)
    const page = { limit: 100, after: null }
    const reviews = (await listMovementReviews(database(), { status: 'open', page })).filter(
      ({ accountId }) => accountId === wallet.accountId,
    )
    expect(reviews).toHaveLength(4)
    verdict = { result: 'clear', lists: [] }
    const ended = await Promise.allSettled([
      ...reviews.map(({ id }) => decide(id, 'released')),
      screenKeptDeposits(sending, running),
      screenKeptDeposits(sending, running),
    ])
    expect(await spendable(wallet)).toBe(25n)
    for (const result of ended)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'conflict' })
    const left = reviews.length - 1
    const stillOpen = (await listMovementReviews(database(), { status: 'open', page })).filter(
      ({ accountId }) => accountId === wallet.accountId,
    )
    expect(stillOpen).toHaveLength(left)
  })

  it('are credited all at once while the chain has the tokens of all', async () => {
    const wallet = await payIn({ result: 'review', lists: ['sandbox_review'] })
    await pay(wallet.address, 25n)
    await watch(running)
    const page = { limit: 100, after: null }
    const reviews = (await listMovementReviews(database(), { status: 'open', page })).filter(
      ({ accountId }) => accountId === wallet.accountId,
    )
    await Promise.all(reviews.map(({ id }) => decide(id, 'released')))
    expect(await spendable(wallet)).toBe(full + 50n)
  })

  it('are covered neither by blocked deposits nor by ones that are not booked yet', async () => {
    const wallet = await payIn({ result: 'review', lists: ['sandbox_review'] })
    const { id = '' } = (await findReview(wallet, 'open')) ?? {}
    await reserveOrder(sending, { accountId: wallet.accountId, units: full })
    await chain.submit(buildTransfer(wallet.accountId, outsideAddress, 25n))
    await watch(running)
    verdict = { result: 'blocked', lists: ['sandbox_sanctions'] }
    await pay(wallet.address, 25n)
    await watch(running)
    await expect(decide(id, 'released')).rejects.toMatchObject({ code: 'conflict' })
    verdict = { result: 'clear', lists: [] }
    await pay(wallet.address, 25n)
    await expect(decide(id, 'released')).rejects.toMatchObject({ code: 'conflict' })
    expect(await spendable(wallet)).toBe(25n)
  })

  it('are not credited by the screening once a reorganization has removed them', async () => {
    const wallet = await payIn(undefined)
    verdict = { result: 'clear', lists: [] }
    const forgetful = { ...sending, chain: { ...chain, transaction: async () => undefined } }
    expect(await screenKeptDeposits(forgetful, running)).toBe(0)
    expect(await spendable(wallet)).toBe(full)
    // An administrator releases it when the chain has it again.
    const { id = '' } = (await findReview(wallet, 'open')) ?? {}
    await decide(id, 'released')
    expect(await spendable(wallet)).toBe(full + 25n)
  })

  it('can be blocked without their chain', async () => {
    const wallet = await payIn({ result: 'review', lists: ['sandbox_review'] })
    const { id = '' } = (await findReview(wallet, 'open')) ?? {}
    const of = () => {
      throw new Error('the deployment is no longer on this chain')
    }
    const parts = { ...sending, chains: { of } }
    const { accountId: decidedBy } = await open()
    const decision = { id, decidedBy, reason: 'No chain.', at: systemClock() }
    await expect(
      decideMovementReview(parts, { ...decision, status: 'released' }, async () => {}),
    ).rejects.toThrow('no longer')
    expect(await decideMovementReview(parts, { ...decision, status: 'blocked' }, async () => {})).toBe(true)
    expect(await findReview(wallet, 'blocked')).toMatchObject({ decidedBy })
  })

  it('get one verdict from several gateways', async () => {
    verdict = { result: 'clear', lists: [] }
    const wallet = await open()
    const strict = {
      ...sending,
      screening: { screen: async (): Promise<Screening> => ({ result: 'review', lists: ['strict'] }) },
    }
    await pay(wallet.address, 25n)
    await Promise.all([sending, strict, sending, strict].map((parts) => createWatchChain(parts)(running)))
    const isKept = (await findReview(wallet, 'open')) !== undefined
    expect(await spendable(wallet)).toBe(isKept ? full : full + 25n)
    expect(await findDifferingWallets(sending, [wallet])).toEqual([])
  })

  it('leave frozen money to come back once, with several gateways comparing at once', async () => {
    const wallet = await open()
    const place = { accountId: wallet.accountId, token: 'USDC', place: chain.name } as const
    await freeze(sending, place, { onChain: full - 50n, leaving: 0n, units: 50n, at: systemClock() })
    await chain.submit(buildTransfer(wallet.accountId, outsideAddress, 25n))
    const at = (seconds: number) => ({
      ...sending,
      clock: () => new Date(systemClock().getTime() + seconds * 1_000),
    })
    await reconcileWallet(at(0), wallet)
    await Promise.all([6, 7, 8, 9].map((seconds) => reconcileWallet(at(seconds), wallet)))
    expect(await spendable(wallet)).toBe(full - 25n)
  })

  it('do not bring back money that was missing', async () => {
    const wallet = await payIn({ result: 'review', lists: ['sandbox_review'] })
    const place = { accountId: wallet.accountId, token: 'USDC', place: chain.name } as const
    await freeze(sending, place, { onChain: full - 25n, leaving: 0n, units: 25n, at: systemClock() })
    expect(await spendable(wallet)).toBe(full - 25n)
    // The chain holds the frozen 25 and the kept 25: only the frozen ones come back.
    await compareFor(wallet)
    expect(await spendable(wallet)).toBe(full)
  })
})
