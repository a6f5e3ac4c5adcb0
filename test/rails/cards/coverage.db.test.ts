import { describe, expect, it } from 'vitest'
import { available, external } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Failure } from '../../../src/core/failures/failure.ts'
import { readCoverages } from '../../../src/rails/wallets/reconcile/read-coverage.ts'
import { onBothEngines } from '../../engines.ts'
import {
  applyCardEvents,
  buildCoverage,
  buildPurchase,
  cardDependencies,
  decide,
  give,
  issueCard,
  listOwned,
  newOwner,
  noon,
  pullHolds,
  pulling,
  settleAll,
} from './scene.ts'

onBothEngines('a card on a wallet that its owner controls', (database) => {
  const partsWith = (accountId: string, chainView: Parameters<typeof buildCoverage>[2]) =>
    cardDependencies(database(), {
      readCoverages: async () => [await buildCoverage(database(), accountId, chainView)],
      pull: pulling(database(), chainView.left),
    })

  it('approves at most the allowance minus held and pending amounts, under concurrent requests', async () => {
    const owner = await newOwner(database(), { USDC: '1000', EURC: '100', USD: '3' }, 'passkey')
    const card = await issueCard(database(), owner, { priority: ['EURC', 'USDC'] })
    const parts = partsWith(owner, { left: '200' })
    // 100 EURC count as 125 of the 200, and are worth 107.05.
    const first = buildPurchase(card, '107.05')
    expect(await decide(parts, first)).toMatchObject({ reason: 'approved' })
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => decide(parts, buildPurchase(card, '10'))),
    )
    expect(answers.filter(({ reason }) => reason === 'approved')).toHaveLength(7)
    expect(await listOwned(database(), owner)).toMatchObject({ length: 4, 0: 'EURC 0 + 100', 1: 'USD 3 + 0' })
    // Cleared but not yet on the chain: it still counts.
    await applyCardEvents(parts, first, 'settled', [['clearing', '107.05']])
    expect(await decide(parts, buildPurchase(card, '5.01'))).toMatchObject({ reason: 'insufficient_funds' })
    await settleAll(database(), owner)
    expect(await decide(parts, buildPurchase(card, '5.01'))).toMatchObject({ reason: 'insufficient_funds' })
    expect(await decide(parts, buildPurchase(card, '5'))).toMatchObject({ reason: 'approved' })
    // The chain was read after the settlement and the pulls, and includes them: 50 are left, and as many promised.
    const later = async () => [
      {
        ...(await buildCoverage(database(), owner, { left: '50' })),
        since: new Date(noon.getTime() + 1_000),
      },
    ]
    const lateParts = cardDependencies(database(), { readCoverages: later })
    expect(await decide(lateParts, buildPurchase(card, '0.01'))).toMatchObject({
      reason: 'insufficient_funds',
    })
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('approves at most the chain balance of a token minus its holds', async () => {
    const owner = await newOwner(database(), { USDC: '100', PYUSD: '50' }, 'passkey')
    const card = await issueCard(database(), owner, { priority: ['USDC', 'PYUSD'] })
    const parts = partsWith(owner, { left: '1000', onChain: { USDC: '40' } })
    expect(await decide(parts, buildPurchase(card, '20'))).toMatchObject({ reason: 'approved' })
    expect(await decide(parts, buildPurchase(card, '70.01'))).toMatchObject({ reason: 'insufficient_funds' })
    expect(await decide(parts, buildPurchase(card, '30'))).toMatchObject({ reason: 'approved' })
    expect(await listOwned(database(), owner)).toEqual(['PYUSD 40 + 10', 'USDC 60 + 40'])
  })

  it('pays from cash alone while the chain is unavailable', async () => {
    const owner = await newOwner(database(), { USDC: '100', USD: '5' }, 'passkey')
    const card = await issueCard(database(), owner)
    const authorize = (amount: string, changes = {}) =>
      decide(cardDependencies(database()), buildPurchase(card, amount, changes))
    expect(await authorize('5.01')).toMatchObject({ reason: 'insufficient_funds' })
    expect(await authorize('0', { type: 'inquiry', units: 0n })).toMatchObject({ balance: 500n })
    expect(await authorize('5')).toMatchObject({ reason: 'approved' })
    const parts = partsWith(owner, { left: '60' })
    expect(await decide(parts, buildPurchase(card, '0', { type: 'inquiry', units: 0n }))).toMatchObject({
      balance: 6000n,
    })
  })

  describe('on two chains', () => {
    const [home, away] = ['base-sepolia', 'arbitrum-sepolia']
    /** 100 on each chain. @param left of the allowance of each chain that answers. */
    const open = async (left: Readonly<Record<string, string>>) => {
      const owner = await newOwner(database(), { USDC: '100' }, 'passkey')
      await post(database(), {
        ...{ id: newId('tx', noon), kind: 'deposit', reference: 'test', at: noon },
        postings: [
          {
            source: external(away),
            destination: available(owner, away),
            money: { asset: 'USDC', units: 100_000_000n },
          },
        ],
      })
      const card = await issueCard(database(), owner, { priority: ['USDC'] })
      const readCoverages = () =>
        Promise.all(
          Object.entries(left).map(([place, allowed]) =>
            buildCoverage(database(), owner, { place, left: allowed }),
          ),
        )
      const parts = cardDependencies(database(), {
        chains: { all: [{ name: home }, { name: away }] },
        readCoverages,
      })
      const places = async () =>
        (await balances(database(), owner))
          .filter(({ asset }) => asset === 'USDC')
          .map(({ place, available: free, held }) => `${place} ${free / 1_000_000n} + ${held / 1_000_000n}`)
          .toSorted()
      return { owner, places, buy: (amount: string) => decide(parts, buildPurchase(card, amount)) }
    }

    it('takes from each chain what its own allowance leaves, and lends it to no other', async () => {
      const { places, buy } = await open({ [home]: '30', [away]: '40' })
      expect(await buy('70.01')).toMatchObject({ reason: 'insufficient_funds' })
      expect(await buy('70')).toMatchObject({ reason: 'approved' })
      expect(await places()).toEqual([
        'arbitrum-sepolia 60 + 0',
        'base-sepolia 70 + 0',
        'escrow.arbitrum-sepolia 0 + 40',
        'escrow.base-sepolia 0 + 30',
      ])
      expect(await buy('0.01')).toMatchObject({ reason: 'insufficient_funds' })
    })

    it('takes nothing from a chain that could not be read, however much the other allows', async () => {
      const { places, buy } = await open({ [away]: '1000' })
      expect(await buy('100.01')).toMatchObject({ reason: 'insufficient_funds' })
      expect(await buy('100')).toMatchObject({ reason: 'approved' })
      expect(await places()).toEqual([
        'arbitrum-sepolia 0 + 0',
        'base-sepolia 100 + 0',
        'escrow.arbitrum-sepolia 0 + 100',
      ])
    })

    it('counts one float for both chains', async () => {
      const { places, buy } = await open({ [home]: '20', [away]: '1000' })
      expect(await buy('45')).toMatchObject({ reason: 'approved' })
      expect(await places()).toEqual(['arbitrum-sepolia 75 + 25', 'base-sepolia 80 + 20'])
      // 5 are left of the float: the next purchase is pulled first.
      expect(await buy('5.01')).toMatchObject({ reason: 'approved' })
      expect(await places()).toContain('escrow.arbitrum-sepolia 0 + 5')
    })

    it('promises the money of both chains once to purchases at the same time', async () => {
      const { owner, buy } = await open({ [home]: '1000', [away]: '1000' })
      const answers = await Promise.all(Array.from({ length: 12 }, () => buy('25')))
      const approved = answers.filter(({ reason }) => reason === 'approved').length
      expect(approved).toBeGreaterThan(0)
      expect(approved).toBeLessThanOrEqual(8)
      const owned = (await balances(database(), owner)).filter(({ asset }) => asset === 'USDC')
      expect(owned.reduce((sum, { held }) => sum + held, 0n)).toBe(BigInt(approved) * 25_000_000n)
      expect(owned.reduce((sum, { available: free, held }) => sum + free + held, 0n)).toBe(200_000_000n)
      expect((await trialBalance(database())).balanced).toBe(true)
    })
  })

  it('has no chain coverage when the chain fails, is slow, or shares the agents’ allowance with cards', async () => {
    const owner = await newOwner(database(), { USDC: '100' }, 'passkey')
    const chain = await createSimulatedChain({ clock: () => noon, log: silentLog })
    const parts = { database: database(), clock: () => noon, log: silentLog }
    const read = (other: Partial<typeof chain>, accountId = owner) =>
      readCoverages({ ...parts, chains: { all: [{ ...chain, ...other }] } }, accountId)
    expect(await read({})).toMatchObject([{ leftMicros: 1_000_000_000n }])
    expect(await read({}, await newOwner(database(), {}))).toEqual([])
    for (const answerAllowance of [
      () => Promise.reject(new Error('gone')),
      () => new Promise<never>(() => {}),
      async () => ({ dailyMicros: 1n, spentMicros: 0n, onceMicros: 0n, isOwn: false }),
    ])
      expect(await read({ readAllowance: answerAllowance })).toEqual([])
  })

  it('is not handed over while purchases hold money in it, in any order of purchase, clearing and change of owner', async () => {
    for (let times = 0; times < 12; times += 1) {
      const owner = await newOwner(database(), { USDC: '100' })
      const card = await issueCard(database(), owner)
      const requests = Array.from({ length: 4 }, () => buildPurchase(card, '10'))
      const cleared = requests[0] ?? buildPurchase(card, '10')
      await decide(cardDependencies(database()), cleared)
      // An allowance of zero: after the hand-over every purchase is declined.
      const parts = partsWith(owner, { left: '0' })
      const giving = () =>
        give(database(), owner).then(
          () => 'given',
          (error: Failure) => error.code,
        )
      const steps = [
        ...requests.slice(1).map((request) => () => decide(parts, request)),
        () => applyCardEvents(parts, cleared, 'settled', [['clearing', '10']]),
        giving,
      ]
      const done = await Promise.all((times % 2 === 0 ? steps : steps.toReversed()).map((step) => step()))
      expect(done).toContain('wallet_busy')
      await settleAll(database(), owner)
      expect(await giving()).toBe('wallet_busy')
      await pullHolds(database(), owner)
      expect(await giving()).toBe('given')
      expect(await decide(parts, buildPurchase(card, '10'))).toMatchObject({ reason: 'insufficient_funds' })
      for (const request of requests.slice(1))
        await applyCardEvents(parts, request, 'settled', [['clearing', '10']])
      expect(await settleAll(database(), owner)).toEqual(Array.from({ length: 3 }, () => 'USDC 10000000'))
    }
  })
})
