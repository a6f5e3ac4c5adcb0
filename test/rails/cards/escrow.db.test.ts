import { describe, expect, it } from 'vitest'
import { sumOpenDebts } from '../../../src/books/debts/debts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { toDecimal } from '../../../src/core/money/money.ts'
import type { CardAuthorization } from '../../../src/providers/card-processor/port.ts'
import {
  deleteOutOfOrderMessage,
  dueOutOfOrderMessages,
  storeOutOfOrderMessage,
} from '../../../src/rails/cards/out-of-order-messages.ts'
import { endSettlements, reopenSettlement, unsentSettlements } from '../../../src/rails/cards/settlements.ts'
import type { Card } from '../../../src/rails/cards/store.ts'
import { beginPullsOfHolds } from '../../../src/rails/wallets/escrow/escrow.ts'
import type { Transfer } from '../../../src/rails/wallets/store.ts'
import { PurseBusy, reverseTransfer } from '../../../src/rails/wallets/transfers/reverse-transfer.ts'
import { collectDebts } from '../../../src/server/jobs/collect-debts.ts'
import { onBothEngines } from '../../engines.ts'
import {
  applyCardEvents,
  beginPull,
  buildCoverage,
  buildPurchase,
  cardDependencies,
  decide,
  endPull,
  give,
  issueCard,
  newOwner,
  noon,
  pulling,
  settleAll,
} from './scene.ts'

onBothEngines('the escrow of cards', (database) => {
  const buildParts = (accountId: string, left = '1000') =>
    cardDependencies(database(), {
      readCoverages: async () => [await buildCoverage(database(), accountId, { left })],
      pull: pulling(database(), left),
    })
  /** Balances as `base-sepolia 900 + 0` (available + held), of USDC. */
  const places = async (accountId: string) =>
    (await balances(database(), accountId))
      .filter(({ asset, available, held }) => asset === 'USDC' && available + held > 0n)
      .map(({ place, asset, available, held }) =>
        [place, toDecimal({ asset, units: available }), '+', toDecimal({ asset, units: held })].join(' '),
      )
      .sort()
  const owner = async (funds = '1000'): Promise<{ accountId: string; card: Card }> => {
    const accountId = await newOwner(database(), { USDC: funds }, 'passkey')
    return { accountId, card: await issueCard(database(), accountId) }
  }
  /** Makes the chain refuse the open attempts of an owner's settlements, as from a wallet that is empty. */
  const refuse = async (accountId: string) => {
    const unsent = await unsentSettlements(cardDependencies(database()), {
      chain: 'base-sepolia',
      at: noon,
      limit: 1000,
    })
    for (const { decisionId } of unsent.filter((each) => each.accountId === accountId))
      await releaseSpend(database(), { decisionId, at: noon })
    return endSettlements(database(), noon)
  }

  const readPulls = (accountId: string) =>
    database()
      .kysely.selectFrom('card_pull')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('units')
      .execute()
  /** Books a pull back that a reorganization removed, and that cannot be sent again. */
  const losePull = async (accountId: string, pull: { decision_id: string; units: bigint }, at = noon) => {
    const transfer = await insertLostTransfer(accountId, pull.decision_id, pull.units)
    await database().transaction((connection) =>
      reverseTransfer({ database: connection, chain: { name: 'base-sepolia' } }, transfer, {
        isPromised: false,
        at,
      }),
    )
  }

  /** Whether a pull cannot be booked back yet. */
  const isBusy = (accountId: string, pull: { decision_id: string; units: bigint }) =>
    losePull(accountId, pull).then(
      () => false,
      (error: unknown) => error instanceof PurseBusy,
    )

  /** Collects what an owner owes, a day later. */
  const collect = (accountId: string) =>
    collectDebts(
      {
        ...buildParts(accountId),
        chains: { all: [{ name: 'base-sepolia' }] },
        log: silentLog,
        clock: () => new Date(noon.getTime() + 86_400_000),
      },
      new AbortController().signal,
    )

  /** A clearing of 900, which a settlement from the escrow is to pay, and the pull that brought its money. */
  const cleared = async () => {
    const { accountId, card } = await owner()
    const parts = buildParts(accountId)
    const request = buildPurchase(card, '900')
    await decide(parts, request)
    await applyCardEvents(parts, request, 'settled', [['clearing', '900']])
    const [pull] = await readPulls(accountId)
    if (pull === undefined) throw new Error('nothing was pulled')
    return { accountId, pull, parts, card, request }
  }

  /** A pull's transfer, which the chain had confirmed. */
  const insertLostTransfer = async (
    accountId: string,
    decisionId: string,
    units: bigint,
  ): Promise<Transfer> => {
    const id = `tx_${decisionId}`
    const shared = {
      id,
      token: 'USDC',
      units,
      destination: '0xe5c0',
      chain: 'base-sepolia',
      signer: 'sandbox',
    } as const
    await database()
      .kysely.insertInto('transfer')
      .values({
        ...shared,
        ...{ account_id: accountId, decision_id: decisionId, state: 'confirmed', mac: '' },
        ...{ created_at: noon, updated_at: noon, valid_until: noon, authorized: JSON.stringify({}) },
      })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    return {
      ...shared,
      decisionId,
      authorization: { kind: 'allowance', agentId: 'cards' },
      wallet: { accountId, origin: { kind: 'gateway' }, owner: { kind: 'gateway' }, cardCover: 0n },
      validUntil: noon,
      mac: null,
      state: 'confirmed',
      transactionHash: null,
    }
  }

  it('has what is above the float before the answer, and pays the clearing', async () => {
    const { accountId, card } = await owner()
    const request = buildPurchase(card, '900')
    expect(await decide(buildParts(accountId), request)).toMatchObject({
      reason: 'approved',
      approved: 90000n,
    })
    expect(await places(accountId)).toEqual(['base-sepolia 100 + 0', 'escrow.base-sepolia 0 + 900'])
    await applyCardEvents(buildParts(accountId), request, 'settled', [['clearing', '900']])
    const [settlement] = (
      await unsentSettlements(cardDependencies(database()), { chain: 'base-sepolia', at: noon, limit: 1000 })
    ).filter((each) => each.accountId === accountId)
    expect(settlement).toMatchObject({ place: 'escrow.base-sepolia', units: 900_000_000n })
    expect(await settleAll(database(), accountId)).toEqual(['USDC 900000000'])
    expect(await places(accountId)).toEqual(['base-sepolia 100 + 0'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('is declined where the chain does not move the money, and nothing is held', async () => {
    const { accountId, card } = await owner()
    const parts = { ...buildParts(accountId), pull: pulling(database(), '899.99') }
    const request = buildPurchase(card, '900')
    expect(await decide(parts, request)).toMatchObject({ reason: 'unavailable', approved: 0n })
    expect(await decide(parts, request)).toMatchObject({ reason: 'unavailable', approved: 0n })
    expect(await places(accountId)).toEqual(['base-sepolia 1000 + 0'])
  })

  it('promises at most the float of a wallet, under concurrent requests', async () => {
    const { accountId, card } = await owner()
    const parts = { ...buildParts(accountId), pull: async () => false }
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => decide(parts, buildPurchase(card, '9.99'))),
    )
    expect(answers.filter(({ reason }) => reason === 'approved')).toHaveLength(5)
    expect(await places(accountId)).toEqual(['base-sepolia 950.05 + 49.95'])
  })

  it('pulls what is within the float afterwards, whatever becomes of it meanwhile', async () => {
    const { accountId, card } = await owner()
    const parts = buildParts(accountId)
    const [reversed, cleared, voided] = ['10', '20', '5'].map((amount) => buildPurchase(card, amount))
    const each = [reversed, cleared, voided].filter(
      (request): request is CardAuthorization => request !== undefined,
    )
    for (const request of each) expect(await decide(parts, request)).toMatchObject({ reason: 'approved' })
    const pull = (await beginPull(database(), accountId)) ?? ''
    expect(await beginPull(database(), accountId)).toBeNull()
    const [first = buildPurchase(card, '1'), second = first, third = first] = each
    await applyCardEvents(parts, first, 'pending', [['reversal', '4']])
    expect(await applyCardEvents(parts, second, 'settled', [['clearing', '20']])).toBe('early')
    await applyCardEvents(parts, third, 'voided', [])
    expect(await places(accountId)).toEqual(['base-sepolia 965 + 35'])
    // Money on its way still counts as promised: 26 of 50 are.
    expect(await decide({ ...parts, pull: async () => false }, buildPurchase(card, '24.01'))).toMatchObject({
      reason: 'unavailable',
    })
    await endPull(database(), pull)
    expect(await places(accountId)).toEqual(['base-sepolia 965 + 0', 'escrow.base-sepolia 9 + 26'])
    expect(await applyCardEvents(parts, second, 'settled', [['clearing', '20']])).toBe('applied')
    expect(await settleAll(database(), accountId)).toEqual(['USDC 20000000'])
    expect(await places(accountId)).toEqual(['base-sepolia 965 + 0', 'escrow.base-sepolia 9 + 6'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('leaves what a failed pull did not move where it was', async () => {
    const { accountId, card } = await owner()
    const parts = buildParts(accountId)
    const request = buildPurchase(card, '30')
    await decide(parts, request)
    const pull = (await beginPull(database(), accountId)) ?? ''
    await applyCardEvents(parts, request, 'pending', [['reversal', '10']])
    await endPull(database(), pull, false)
    expect(await places(accountId)).toEqual(['base-sepolia 980 + 20'])
    await endPull(database(), pull, true)
    expect(await places(accountId)).toEqual(['base-sepolia 980 + 20'])
    const events = [
      ['reversal', '10'],
      ['clearing', '20'],
    ] as const
    await applyCardEvents(parts, request, 'settled', events)
    expect(await settleAll(database(), accountId)).toEqual(['USDC 20000000'])
  })

  it('loses at most the float to an owner who empties the wallet, and books it as a debt at once', async () => {
    const { accountId, card } = await owner()
    const parts = buildParts(accountId)
    const request = buildPurchase(card, '50')
    await decide(parts, request)
    await applyCardEvents(parts, request, 'settled', [['clearing', '50']])
    expect(await refuse(accountId)).toHaveLength(1)
    expect(await sumOpenDebts(database(), accountId)).toEqual([{ asset: 'USD', units: 5000n }])
    expect(await decide(parts, buildPurchase(card, '1'))).toMatchObject({ reason: 'debt_owed' })
  })

  it('credits the return of an unpaid purchase only after what is owed for it', async () => {
    const { accountId, card } = await owner()
    const parts = buildParts(accountId)
    const request = buildPurchase(card, '50')
    await decide(parts, request)
    await applyCardEvents(parts, request, 'settled', [['clearing', '50']])
    // It is not known yet whether the chain pays.
    const returned = [
      ['clearing', '50'],
      ['refund', '30'],
    ] as const
    expect(await applyCardEvents(parts, request, 'settled', returned)).toBe('early')
    expect((await balances(database(), accountId)).filter(({ place }) => place === 'bank')).toEqual([])
    await refuse(accountId)
    expect(await applyCardEvents(parts, request, 'settled', returned)).toBe('applied')
    expect(await sumOpenDebts(database(), accountId)).toEqual([{ asset: 'USD', units: 2000n }])
    expect(await applyCardEvents(parts, request, 'settled', [...returned, ['refund', '50']])).toBe('applied')
    expect(await sumOpenDebts(database(), accountId)).toEqual([])
    expect(await balances(database(), accountId)).toMatchObject([
      { asset: 'USD', available: 3000n },
      { asset: 'USDC', available: 1_000_000_000n, held: 0n },
    ])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('takes over what a wallet has promised before the wallet changes hands', async () => {
    const accountId = await newOwner(database(), { USDC: '1000' })
    const card = await issueCard(database(), accountId)
    const request = buildPurchase(card, '900')
    expect(await decide(cardDependencies(database()), request)).toMatchObject({ reason: 'approved' })
    // What was written before, such as the new signer, goes with it.
    const busy = { code: 'wallet_busy', members: { isCommitted: false } }
    await expect(give(database(), accountId)).rejects.toMatchObject(busy)
    const chain = await createSimulatedChain({ clock: () => noon, log: silentLog })
    expect(await beginPullsOfHolds({ ...cardDependencies(database()), chain }, accountId, noon)).toBe(1)
    await expect(give(database(), accountId)).rejects.toMatchObject({ code: 'wallet_busy' })
    const [pull] = await database()
      .kysely.selectFrom('card_pull')
      .selectAll()
      .where('account_id', '=', accountId)
      .execute()
    await endPull(database(), pull?.decision_id ?? '')
    await give(database(), accountId)
    expect(await places(accountId)).toEqual(['base-sepolia 100 + 0', 'escrow.base-sepolia 0 + 900'])
  })

  describe('while the payment of a debt from the wallet may still fail', () => {
    /** 50 that the chain refused to pay in USDC, which PYUSD is on its way to pay. */
    const paying = async () => {
      const accountId = await newOwner(database(), { USDC: '50', PYUSD: '50' }, 'passkey')
      const card = await issueCard(database(), accountId)
      const parts = buildParts(accountId)
      const request = buildPurchase(card, '50')
      await decide(parts, request)
      await applyCardEvents(parts, request, 'settled', [['clearing', '50']])
      await refuse(accountId)
      const chains = { all: [{ name: 'base-sepolia' }] }
      await collectDebts({ ...parts, chains, log: silentLog }, new AbortController().signal)
      expect(await sumOpenDebts(database(), accountId)).toEqual([])
      return { accountId, card, parts, request }
    }

    it('promises nothing more than the float', async () => {
      const { accountId, card, parts } = await paying()
      const unpulled = { ...parts, pull: async () => false }
      expect(await decide(unpulled, buildPurchase(card, '50'))).toMatchObject({ reason: 'unavailable' })
      await settleAll(database(), accountId)
      expect(await decide(unpulled, buildPurchase(card, '50'))).toMatchObject({ reason: 'approved' })
    })

    it('credits no return', async () => {
      const { accountId, parts, request } = await paying()
      const events = [
        ['clearing', '50'],
        ['refund', '50'],
      ] as const
      expect(await applyCardEvents(parts, request, 'settled', events)).toBe('early')
      await settleAll(database(), accountId)
      expect(await applyCardEvents(parts, request, 'settled', events)).toBe('applied')
      expect((await balances(database(), accountId)).filter(({ place }) => place === 'bank')).toMatchObject([
        { asset: 'USD', available: 5000n },
      ])
    })
  })

  it('holds in the wallet again what the chain has lost on its way to the escrow', async () => {
    const { accountId, card } = await owner()
    const parts = buildParts(accountId)
    const [free, kept] = [buildPurchase(card, '100'), buildPurchase(card, '300')]
    for (const request of [free, kept])
      expect(await decide(parts, request)).toMatchObject({ reason: 'approved' })
    await applyCardEvents(parts, free, 'voided', [])
    expect(await places(accountId)).toEqual(['base-sepolia 600 + 0', 'escrow.base-sepolia 100 + 300'])
    for (const pull of await readPulls(accountId)) await losePull(accountId, pull)
    expect(await places(accountId)).toEqual(['base-sepolia 700 + 300'])
    expect(await beginPull(database(), accountId)).not.toBeNull()
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('holds in the wallet again the part of a purchase that a lost pull had brought', async () => {
    const { accountId, card } = await owner()
    const parts = buildParts(accountId)
    const earlier = [buildPurchase(card, '100'), buildPurchase(card, '100')]
    for (const request of earlier) expect(await decide(parts, request)).toMatchObject({ reason: 'approved' })
    for (const request of earlier) await applyCardEvents(parts, request, 'voided', [])
    // It holds what both pulls have brought.
    const request = buildPurchase(card, '150')
    expect(await decide(parts, request)).toMatchObject({ reason: 'approved' })
    expect(await places(accountId)).toEqual(['base-sepolia 800 + 0', 'escrow.base-sepolia 50 + 150'])
    const seen: (readonly string[])[] = []
    for (const pull of await readPulls(accountId)) {
      await losePull(accountId, pull)
      seen.push(await places(accountId))
    }
    expect(seen).toEqual([
      ['base-sepolia 850 + 50', 'escrow.base-sepolia 0 + 100'],
      ['base-sepolia 850 + 150'],
    ])
    await applyCardEvents(parts, request, 'voided', [])
    expect(await places(accountId)).toEqual(['base-sepolia 1000 + 0'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('collects from the wallet, once, what the payment of a lost pull still owes', async () => {
    const { accountId, pull } = await cleared()
    // The chain has not decided on the payment yet.
    expect(await isBusy(accountId, pull)).toBe(true)
    await refuse(accountId)
    await losePull(accountId, pull)
    expect(await places(accountId)).toEqual(['base-sepolia 1000 + 0'])
    expect(await sumOpenDebts(database(), accountId)).toEqual([{ asset: 'USD', units: 90000n }])
    await collect(accountId)
    expect(await places(accountId)).toEqual(['base-sepolia 100 + 900'])
    expect(await settleAll(database(), accountId)).toEqual(['USDC 900000000'])
    expect(await places(accountId)).toEqual(['base-sepolia 100 + 0'])
    expect(await sumOpenDebts(database(), accountId)).toEqual([])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('waits for the reversal of a payment that the chain has lost with its pull', async () => {
    const { accountId, pull } = await cleared()
    const [settlement] = (
      await unsentSettlements(cardDependencies(database()), { chain: 'base-sepolia', at: noon, limit: 1000 })
    ).filter((each) => each.accountId === accountId)
    const decisionId = settlement?.decisionId ?? ''
    await settleAll(database(), accountId)
    expect(await isBusy(accountId, pull)).toBe(true)
    const paid = await insertLostTransfer(accountId, decisionId, 900_000_000n)
    await database().transaction(async (connection) => {
      const isPromised = await reopenSettlement(connection, { decisionId, at: noon })
      await reverseTransfer(
        { database: connection, chain: { name: 'base-sepolia' } },
        { ...paid, wallet: { ...paid.wallet, isEscrow: true } },
        { isPromised, at: noon },
      )
    })
    expect(await places(accountId)).toEqual(['base-sepolia 100 + 0', 'escrow.base-sepolia 0 + 900'])
    await losePull(accountId, pull)
    expect(await places(accountId)).toEqual(['base-sepolia 1000 + 0'])
    expect(await sumOpenDebts(database(), accountId)).toEqual([{ asset: 'USD', units: 90000n }])
    await collect(accountId)
    await settleAll(database(), accountId)
    expect(await places(accountId)).toEqual(['base-sepolia 100 + 0'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('keeps in the escrow what other pulls have brought of a payment', async () => {
    const { accountId, card } = await owner()
    const parts = buildParts(accountId)
    const earlier = [buildPurchase(card, '100'), buildPurchase(card, '100')]
    for (const request of earlier) await decide(parts, request)
    for (const request of earlier) await applyCardEvents(parts, request, 'voided', [])
    const request = buildPurchase(card, '150')
    await decide(parts, request)
    await applyCardEvents(parts, request, 'settled', [['clearing', '150']])
    await refuse(accountId)
    const [first, second] = await readPulls(accountId)
    if (first === undefined || second === undefined) throw new Error('two pulls were expected')
    expect(await places(accountId)).toEqual(['base-sepolia 800 + 0', 'escrow.base-sepolia 50 + 150'])
    await losePull(accountId, first)
    expect(await places(accountId)).toEqual(['base-sepolia 900 + 0', 'escrow.base-sepolia 100 + 0'])
    await applyCardEvents(parts, request, 'settled', [
      ['clearing', '150'],
      ['refund', '20'],
    ])
    expect(await sumOpenDebts(database(), accountId)).toEqual([{ asset: 'USD', units: 13000n }])
    await collect(accountId)
    await settleAll(database(), accountId)
    expect(await sumOpenDebts(database(), accountId)).toEqual([])
    const left = (await balances(database(), accountId)).reduce((sum, { available }) => sum + available, 0n)
    expect(left).toBe(870_000_000n)
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('books a lost pull back from outside where nothing explains within an hour where its money went', async () => {
    const { accountId, pull } = await cleared()
    await settleAll(database(), accountId)
    await losePull(accountId, pull, new Date(noon.getTime() + 2 * 3_600_000))
    expect(await places(accountId)).toEqual(['base-sepolia 1000 + 0'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('applies messages although others wait for the chain', async () => {
    const { accountId, card } = await owner()
    const parts = buildParts(accountId)
    const requests = Array.from({ length: 4 }, () => buildPurchase(card, '5'))
    for (const { token, ...request } of requests) {
      await decide(parts, { ...request, token })
      await storeOutOfOrderMessage(database(), { webhookId: token, token, message: { token }, at: noon })
    }
    const seen = new Set<string>()
    for (let round = 0; round < 500 && seen.size < requests.length; round += 1)
      for (const { webhookId } of await dueOutOfOrderMessages(database(), { before: noon, limit: 1 }))
        seen.add(webhookId)
    expect(seen.size).toBe(requests.length)
    for (const { token } of requests) await deleteOutOfOrderMessage(database(), token)
  })
})
