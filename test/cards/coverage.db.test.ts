import { expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import { trialBalance } from '../../src/ledger/trial-balance.ts'
import { createSimulatedChain } from '../../src/providers/chain/simulated/simulated.ts'
import { readCoverage } from '../../src/wallets/reconcile/read-coverage.ts'
import { onBothEngines } from '../engines.ts'
import {
  applyCardEvents,
  cardDependencies,
  coverageOf,
  decide,
  fund,
  give,
  issueCard,
  newOwner,
  noon,
  owned,
  purchaseOf,
  settleAll,
} from './scene.ts'

onBothEngines('a card on a wallet that its owner controls', (database) => {
  const partsWith = (accountId: string, chainView: Parameters<typeof coverageOf>[2]) =>
    cardDependencies(database(), { readCoverage: () => coverageOf(database(), accountId, chainView) })

  it('approves at most the allowance minus held and pending amounts, under concurrent requests', async () => {
    const owner = await newOwner(database(), { USDC: '1000', EURC: '100', USD: '3' }, 'passkey')
    const card = await issueCard(database(), owner, { priority: ['EURC', 'USDC'] })
    const parts = partsWith(owner, { left: '200' })
    // 100 EURC count as 125 of the 200, and are worth 107.05.
    const first = purchaseOf(card, '107.05')
    expect(await decide(parts, first)).toMatchObject({ reason: 'approved' })
    const answers = await Promise.all(Array.from({ length: 20 }, () => decide(parts, purchaseOf(card, '10'))))
    expect(answers.filter(({ reason }) => reason === 'approved')).toHaveLength(7)
    expect(answers.filter(({ reason }) => reason === 'insufficient_funds')).toHaveLength(13)
    expect(await owned(database(), owner)).toEqual(['EURC 0 + 100', 'USD 3 + 0', 'USDC 930 + 70'])
    // Cleared but not yet on the chain: it still counts.
    await applyCardEvents(parts, first, 'settled', [['clearing', '107.05']])
    expect(await decide(parts, purchaseOf(card, '5.01'))).toMatchObject({ reason: 'insufficient_funds' })
    await settleAll(database(), owner)
    expect(await decide(parts, purchaseOf(card, '5.01'))).toMatchObject({ reason: 'insufficient_funds' })
    expect(await decide(parts, purchaseOf(card, '5'))).toMatchObject({ reason: 'approved' })
    // The chain was read after the settlement and includes it: 75 are left, and as many held.
    const later = async () => ({
      ...(await coverageOf(database(), owner, { left: '75' })),
      since: new Date(noon.getTime() + 1_000),
    })
    const lateParts = cardDependencies(database(), { readCoverage: later })
    expect(await decide(lateParts, purchaseOf(card, '0.01'))).toMatchObject({ reason: 'insufficient_funds' })
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('approves at most the chain balance of a token minus its holds', async () => {
    const owner = await newOwner(database(), { USDC: '100', PYUSD: '50' }, 'passkey')
    const card = await issueCard(database(), owner, { priority: ['USDC', 'PYUSD'] })
    const parts = partsWith(owner, { left: '1000', onChain: { USDC: '40' } })
    expect(await decide(parts, purchaseOf(card, '30'))).toMatchObject({ reason: 'approved' })
    expect(await decide(parts, purchaseOf(card, '60.01'))).toMatchObject({ reason: 'insufficient_funds' })
    expect(await decide(parts, purchaseOf(card, '60'))).toMatchObject({ reason: 'approved' })
    expect(await owned(database(), owner)).toEqual(['PYUSD 0 + 50', 'USDC 60 + 40'])
  })

  it('pays from cash alone while the chain is unavailable', async () => {
    const owner = await newOwner(database(), { USDC: '100', USD: '5' }, 'passkey')
    const card = await issueCard(database(), owner)
    const authorize = (amount: string, changes = {}) =>
      decide(cardDependencies(database()), purchaseOf(card, amount, changes))
    expect(await authorize('5.01')).toMatchObject({ reason: 'insufficient_funds' })
    expect(await authorize('0', { type: 'inquiry', units: 0n })).toMatchObject({ balance: 500n })
    expect(await authorize('5')).toMatchObject({ reason: 'approved' })
    const parts = partsWith(owner, { left: '60' })
    expect(await decide(parts, purchaseOf(card, '0', { type: 'inquiry', units: 0n }))).toMatchObject({
      balance: 6000n,
    })
  })

  it('has no chain coverage when the chain fails, is slow, or shares the agents’ allowance with cards', async () => {
    const owner = await newOwner(database(), { USDC: '100' }, 'passkey')
    const chain = await createSimulatedChain({ clock: () => noon, log: silentLog })
    const parts = { database: database(), chain, clock: () => noon, log: silentLog }
    expect(await readCoverage(parts, owner)).toMatchObject({ leftMicros: 1_000_000_000n })
    expect(await readCoverage(parts, await newOwner(database(), {}))).toBeNull()
    for (const allowanceOf of [
      () => Promise.reject(new Error('gone')),
      () => new Promise<never>(() => {}),
      async () => ({ dailyMicros: 1n, spentMicros: 0n, onceMicros: 0n, isOwn: false }),
    ])
      expect(await readCoverage({ ...parts, chain: { ...chain, allowanceOf } }, owner)).toBeNull()
  })

  it('covers every hold, in any order of purchase, clearing and change of owner', async () => {
    for (let times = 0; times < 12; times += 1) {
      const owner = await newOwner(database(), { USDC: '100' })
      const card = await issueCard(database(), owner)
      const requests = Array.from({ length: 4 }, () => purchaseOf(card, '10'))
      const cleared = requests[0] ?? purchaseOf(card, '10')
      await decide(cardDependencies(database()), cleared)
      // An allowance of zero: after the hand-over every purchase is declined.
      const parts = partsWith(owner, { left: '0' })
      const steps = [
        ...requests.slice(1).map((request) => () => decide(parts, request)),
        () => applyCardEvents(parts, cleared, 'settled', [['clearing', '10']]),
        () => give(database(), owner),
      ]
      await Promise.all((times % 2 === 0 ? steps : steps.toReversed()).map((step) => step()))
      const cover = await give(database(), owner)
      const held = (await owned(database(), owner))[0]?.split(' + ')[1]
      expect(`${cover / 1_000_000n}`).toBe(held)
      expect(await decide(parts, purchaseOf(card, '10'))).toMatchObject({ reason: 'insufficient_funds' })
    }
  })

  it('is handed over once, with held and pending amounts, and without final ones', async () => {
    const owner = await newOwner(database(), { USDC: '100', EURC: '10' })
    const card = await issueCard(database(), owner, { priority: ['USDC', 'EURC'] })
    const [held, cleared, settled, voided] = ['1', '2', '3', '4'].map((amount) => purchaseOf(card, amount))
    for (const request of [held, cleared, settled, voided])
      if (request !== undefined) await decide(cardDependencies(database()), request)
    if (settled !== undefined)
      await applyCardEvents(cardDependencies(database()), settled, 'settled', [['clearing', '3']])
    await settleAll(database(), owner)
    if (cleared !== undefined)
      await applyCardEvents(cardDependencies(database()), cleared, 'settled', [['clearing', '2']])
    if (voided !== undefined) await applyCardEvents(cardDependencies(database()), voided, 'voided', [])
    expect(await give(database(), owner)).toBe(3_000_000n)
    await fund(database(), owner, { USD: '50' })
    expect(
      await decide(
        cardDependencies(database()),
        purchaseOf(await issueCard(database(), owner, { priority: ['USD'] }), '50'),
      ),
    ).toMatchObject({
      reason: 'approved',
    })
    expect(await give(database(), owner)).toBe(3_000_000n)
  })
})
