import { expect, it } from 'vitest'
import { z } from 'zod'
import { openAlarms, resolveAlarm } from '../../../src/books/alarms/alarms.ts'
import { openDebts, sumOpenDebts } from '../../../src/books/debts/debts.ts'
import { available, external, held, receivable } from '../../../src/books/ledger/accounts.ts'
import { readSystemBalance } from '../../../src/books/ledger/balances.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { stablecoins } from '../../../src/core/money/money.ts'
import type { Value } from '../../../src/core/money/shares.ts'
import {
  endSettlements,
  MAX_ATTEMPTS,
  reopenSettlement,
  retrySettlements,
  unsentSettlements,
} from '../../../src/rails/cards/settlements.ts'
import { type Card, updateCard } from '../../../src/rails/cards/store.ts'
import { collectDebts } from '../../../src/server/jobs/collect-debts.ts'
import { buildSpend } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import {
  applyCardEvents,
  buildPurchase,
  cardDependencies,
  decide,
  fund,
  issueCard,
  listOwned,
  newOwner,
  noon,
  settleAll,
} from './scene.ts'

const chains = { all: [{ name: 'base-sepolia' }, { name: 'arbitrum-sepolia' }] }

onBothEngines('a card debt', (database) => {
  const collect = () =>
    collectDebts({ ...cardDependencies(database()), chains, log: silentLog }, new AbortController().signal)
  const listOwed = async (owner: string) =>
    (await sumOpenDebts(database(), owner)).map(({ asset, units }) => `${asset} ${units}`)
  const receivables = () => readSystemBalance(database(), receivable('debts'), 'USD')
  const force = async (owner: string, amount: string, controls: Partial<Card> = {}) => {
    const card = await issueCard(database(), owner, controls)
    if (controls.status !== undefined) await updateCard(database(), { ...card, status: controls.status })
    const request = buildPurchase(card, '0')
    await applyCardEvents(cardDependencies(database()), request, 'settled', [['clearing', amount]], true)
    return card
  }
  /** Makes the chain refuse the open attempt of an owner's settlement. */
  const refuse = async (owner: string, at: Date) => {
    const [open] = (
      await unsentSettlements(cardDependencies(database()), { chain: 'base-sepolia', at: noon, limit: 1000 })
    ).filter(({ accountId }) => accountId === owner)
    if (open === undefined) throw new Error('no settlement is open')
    await releaseSpend(database(), { decisionId: open.decisionId, at })
    return endSettlements(database(), at)
  }
  const readSettlements = (owner: string) =>
    database()
      .kysely.selectFrom('card_settlement')
      .selectAll()
      .where('account_id', '=', owner)
      .orderBy('id')
      .execute()
  /** Refuses a settlement until it becomes a debt. @returns the time. */
  const refuseForGood = async (owner: string): Promise<Date> => {
    let at = noon
    for (let tries = 1; ; tries += 1) {
      const debts = await refuse(owner, at)
      if (debts.length > 0) {
        expect(tries).toBe(MAX_ATTEMPTS)
        return at
      }
      const [settlement] = (await readSettlements(owner)).filter(({ status }) => status === 'refused')
      at = settlement?.next_try_at ?? at
      await retrySettlements(cardDependencies(database()), new Date(at.getTime() - 1))
      expect(
        (
          await unsentSettlements(cardDependencies(database()), {
            chain: 'base-sepolia',
            at: noon,
            limit: 1000,
          })
        ).some(({ accountId }) => accountId === owner),
      ).toBe(false)
      await retrySettlements(cardDependencies(database()), at)
    }
  }

  it('is recovered from every balance at once, also when it is force posted on a frozen card', async () => {
    const owner = await newOwner(database(), { USDC: '10', EURC: '10', USD: '5' })
    const [before, network] = [
      await receivables(),
      await readSystemBalance(database(), external('cards'), 'USD'),
    ]
    await force(owner, '50', { priority: ['EURC'], status: 'frozen' })
    // 10 EURC are 10.705, and so 24.295 are missing: to the next cent.
    expect(await listOwned(database(), owner)).toEqual(['EURC 0 + 10', 'USDC 0 + 10'])
    expect(await listOwed(owner)).toEqual(['USD 2430'])
    expect((await receivables()) - before).toBe(-2430n)
    expect((await readSystemBalance(database(), external('cards'), 'USD')) - network).toBe(2930n)
    expect(await settleAll(database(), owner)).toEqual(['EURC 10000000', 'USDC 10000000'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('declines every purchase until it is paid, and is paid once by incoming money under concurrent collectors', async () => {
    const owner = await newOwner(database(), {})
    const before = await receivables()
    const card = await force(owner, '30')
    await fund(database(), owner, { USD: '12', EURC: '5' })
    expect(await decide(cardDependencies(database()), buildPurchase(card, '1'))).toMatchObject({
      reason: 'debt_owed',
    })
    expect(
      await decide(cardDependencies(database()), buildPurchase(card, '0', { type: 'inquiry' })),
    ).toMatchObject({
      balance: 0n,
    })
    await Promise.all([collect(), collect(), collect()])
    // 5 EURC are 5.3525: fractions of a cent are not counted.
    expect(await listOwed(owner)).toEqual(['USD 1265'])
    expect(await listOwned(database(), owner)).toEqual(['EURC 0 + 5'])
    await fund(database(), owner, { PYUSD: '100' })
    await Promise.all([
      collect(),
      collect(),
      decide(cardDependencies(database()), buildPurchase(card, '100')),
    ])
    expect(await listOwed(owner)).toEqual([])
    expect(await listOwned(database(), owner)).toEqual(['EURC 0 + 5', 'PYUSD 87.35 + 12.65'])
    expect(await settleAll(database(), owner)).toEqual(['EURC 5000000', 'PYUSD 12650000'])
    expect(await receivables()).toBe(before)
    expect(await decide(cardDependencies(database()), buildPurchase(card, '87.35'))).toMatchObject({
      reason: 'approved',
    })
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('is one debt per clearing under repeated and concurrent deliveries', async () => {
    const owner = await newOwner(database(), { USD: '1' })
    const card = await issueCard(database(), owner)
    const requests = Array.from({ length: 5 }, () => buildPurchase(card, '0'))
    await Promise.all(
      [...requests, ...requests, ...requests].map((request) =>
        applyCardEvents(cardDependencies(database()), request, 'settled', [['clearing', '2']], true),
      ),
    )
    expect(await listOwed(owner)).toEqual(['USD 900'])
  })

  it('is collected from every chain and from the escrow', async () => {
    const owner = await newOwner(database(), {})
    await force(owner, '100')
    const places = ['escrow.base-sepolia', 'arbitrum-sepolia', 'escrow.arbitrum-sepolia']
    for (const place of places)
      await post(database(), {
        ...{ id: newId('tx', noon), kind: 'deposit', reference: 'test', at: noon },
        postings: [
          {
            source: external('base-sepolia'),
            destination: available(owner, place),
            money: { asset: 'USDC', units: 30_000_000n },
          },
        ],
      })
    await collect()
    expect(await listOwed(owner)).toEqual(['USD 1000'])
    const paid = []
    for (const chain of ['base-sepolia', 'arbitrum-sepolia'])
      paid.push(
        ...(await unsentSettlements(cardDependencies(database()), { chain, at: noon, limit: 1000 })).filter(
          ({ accountId }) => accountId === owner,
        ),
      )
    // Settlements of a chain are sent in the order of their decisions, which have the same millisecond here.
    expect(paid.map(({ place, units }) => `${place} ${units}`).toSorted()).toEqual(
      places.map((place) => `${place} 30000000`).toSorted(),
    )
  })

  it('is not carried from one chain to the other and back while both refuse', async () => {
    const owner = await newOwner(database(), { USDC: '20' }, 'passkey')
    await post(database(), {
      ...{ id: newId('tx', noon), kind: 'deposit', reference: 'test', at: noon },
      postings: [
        {
          source: external('arbitrum-sepolia'),
          destination: available(owner, 'arbitrum-sepolia'),
          money: { asset: 'USDC', units: 20_000_000n },
        },
      ],
    })
    await force(owner, '15')
    const sendRefused = async (at: Date) => {
      const clock = () => at
      const unsent = await unsentSettlements(cardDependencies(database()), {
        chain: 'base-sepolia',
        at,
        limit: 1000,
      })
      for (const { decisionId } of unsent.filter(({ accountId }) => accountId === owner))
        await releaseSpend(database(), { decisionId, at })
      await endSettlements(database(), at)
      const parts = { ...cardDependencies(database()), chains, log: silentLog, clock }
      await collectDebts(parts, new AbortController().signal)
    }
    const minute = Array.from({ length: 60 }, (_, second) => new Date(noon.getTime() + second * 1_000))
    for (const at of minute) await sendRefused(at)
    expect((await readSettlements(owner)).length).toBeLessThan(8)
    // Money that nobody can take away pays at once.
    await fund(database(), owner, { USD: '15' })
    await sendRefused(minute.at(-1) ?? noon)
    await collect()
    expect(await listOwed(owner)).toEqual([])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('is booked at the first refusal, while the money stays held', async () => {
    const owner = await newOwner(database(), { USDC: '20' })
    const before = await receivables()
    const card = await force(owner, '15')
    const at = await refuseForGood(owner)
    expect(await listOwned(database(), owner)).toEqual(['USDC 5 + 15'])
    expect(await listOwed(owner)).toEqual(['USD 1500'])
    const [settlement] = await readSettlements(owner)
    expect((await openDebts(database(), 1000)).filter(({ accountId }) => accountId === owner)).toMatchObject([
      { kind: 'settlement', reference: settlement?.id, owed: 1500n, tries: MAX_ATTEMPTS },
    ])
    expect(await decide(cardDependencies(database()), buildPurchase(card, '1'))).toMatchObject({
      reason: 'debt_owed',
    })
    // Cash pays it, and releases the same amount of its hold.
    await fund(database(), owner, { USD: '6' })
    await collect()
    expect(await listOwed(owner)).toEqual(['USD 900'])
    expect(await listOwned(database(), owner)).toEqual(['USDC 11 + 9'])
    // A pending attempt may pay it: no other money is used meanwhile, and what it settles counts as paid.
    const next = (await readSettlements(owner))[0]?.next_try_at ?? at
    await retrySettlements(cardDependencies(database()), next)
    await fund(database(), owner, { USD: '9' })
    await collect()
    expect(await listOwned(database(), owner)).toEqual(['USD 9 + 0', 'USDC 11 + 9'])
    expect(await settleAll(database(), owner)).toEqual(['USDC 9000000'])
    expect(await listOwed(owner)).toEqual([])
    expect(await listOwned(database(), owner)).toEqual(['USD 9 + 0', 'USDC 11 + 0'])
    expect(await receivables()).toBe(before)
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  /** Makes the chain lose the transfer of an owner's settlement, which is reversed in the ledger. */
  const lose = async (owner: string) => {
    const [settlement] = await readSettlements(owner)
    if (settlement === undefined) throw new Error('nothing was settled')
    const { decision_id: decisionId, asset, units } = settlement
    await database().transaction(async (connection) => {
      expect(await reopenSettlement(connection, { decisionId, at: noon })).toBe(true)
      await post(connection, {
        id: `reversal:${decisionId}`,
        kind: 'transfer_reversal',
        reference: decisionId,
        at: noon,
        postings: [
          {
            source: external('base-sepolia'),
            destination: held(owner, 'base-sepolia'),
            money: { asset: z.enum(stablecoins).parse(asset), units },
          },
        ],
      })
    })
  }

  it('is owed again when the chain loses the settlement that paid it, and purchases are declined from then on', async () => {
    const owner = await newOwner(database(), { USDC: '20' })
    const before = await receivables()
    await force(owner, '15')
    const at = await refuseForGood(owner)
    const later = new Date(at.getTime() + 86_400_000)
    await retrySettlements(cardDependencies(database()), later)
    expect(await settleAll(database(), owner)).toEqual(['USDC 15000000'])
    expect(await listOwed(owner)).toEqual([])
    await lose(owner)
    await retrySettlements(cardDependencies(database()), later)
    await refuse(owner, later)
    expect(await listOwed(owner)).toEqual(['USD 1500'])
    expect((await receivables()) - before).toBe(-1500n)
    await fund(database(), owner, { USD: '15' })
    await collect()
    expect(await listOwned(database(), owner)).toEqual(['USDC 20 + 0'])
    expect(await listOwed(owner)).toEqual([])
    expect(await receivables()).toBe(before)
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('settles again what the chain lost before its outcome was recorded', async () => {
    const owner = await newOwner(database(), { USDC: '20' })
    await force(owner, '15')
    const [open] = (
      await unsentSettlements(cardDependencies(database()), { chain: 'base-sepolia', at: noon, limit: 1000 })
    ).filter(({ accountId }) => accountId === owner)
    const decisionId = open?.decisionId ?? ''
    await settleSpend(database(), { decisionId, destination: external('base-sepolia'), at: noon })
    await lose(owner)
    await endSettlements(database(), noon)
    expect((await readSettlements(owner)).map(({ status }) => status)).toEqual(['refused'])
    await retrySettlements(cardDependencies(database()), noon)
    expect(await settleAll(database(), owner)).toEqual(['USDC 15000000'])
    expect(await listOwned(database(), owner)).toEqual(['USDC 5 + 0'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('releases its whole hold once cash has paid it', async () => {
    const owner = await newOwner(database(), { EURC: '10' })
    await force(owner, '10')
    await refuseForGood(owner)
    await fund(database(), owner, { USD: '25' })
    await collect()
    expect(await listOwed(owner)).toEqual([])
    expect(await listOwned(database(), owner)).toEqual(['EURC 10 + 0', 'USD 15 + 0'])
    await retrySettlements(cardDependencies(database()), new Date(noon.getTime() + 86_400_000))
    expect((await readSettlements(owner)).map(({ status }) => status)).toEqual(['freed'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('settles an attempt once when it is confirmed, refused and collected concurrently', async () => {
    for (let times = 0; times < 8; times += 1) {
      const owner = await newOwner(database(), { USDC: '10' })
      await force(owner, '12')
      const [open] = (
        await unsentSettlements(cardDependencies(database()), {
          chain: 'base-sepolia',
          at: noon,
          limit: 1000,
        })
      ).filter(({ accountId }) => accountId === owner)
      const decisionId = open?.decisionId ?? ''
      await fund(database(), owner, { USD: '5' })
      await Promise.all([
        settleSpend(database(), { decisionId, destination: external('base-sepolia'), at: noon }),
        releaseSpend(database(), { decisionId, at: noon }),
        endSettlements(database(), noon),
        retrySettlements(cardDependencies(database()), noon),
        collect(),
        fund(database(), owner, { USDT: '1' }),
      ])
      await endSettlements(database(), noon)
      await retrySettlements(cardDependencies(database()), new Date(noon.getTime() + 60_000))
      await settleAll(database(), owner)
      await collect()
      expect(await listOwed(owner)).toEqual([])
      expect(await listOwned(database(), owner)).toEqual(['USD 3 + 0', 'USDT 1 + 0'])
    }
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('blocks spending of the owed amount, and allows selling shares to pay it', async () => {
    const owner = await newOwner(database(), { USDC: '10' })
    await force(owner, '50')
    expect(await listOwed(owner)).toEqual(['USD 4000'])
    await fund(database(), owner, { USDC: '25' })
    const spend = (asset: Value['asset'], place: string) =>
      reserveSpend(
        database(),
        buildSpend({ accountId: owner, keyId: null }, 1_000_000n, {
          money: { asset, units: 1_000_000n },
          place,
        }),
      )
    expect(await spend('USDC', 'base-sepolia')).toMatchObject({
      verdict: 'insufficient_funds',
      available: { units: 0n },
    })
    expect(await spend('equity:VTI', 'broker')).toMatchObject({ verdict: 'insufficient_funds' })
    await post(database(), {
      ...{ id: newId('tx', noon), kind: 'fill', reference: owner, at: noon },
      postings: [
        {
          source: external('broker'),
          destination: available(owner, 'broker'),
          money: { asset: 'equity:VTI', units: 1_000_000n },
        },
      ],
    })
    expect(await spend('equity:VTI', 'broker')).toMatchObject({ verdict: 'allow' })
    await collect()
    expect(await listOwed(owner)).toEqual(['USD 1500'])
    await fund(database(), owner, { USDC: '17' })
    await collect()
    expect(await spend('USDC', 'base-sepolia')).toMatchObject({ verdict: 'allow' })
  })

  it('sends no settlement that was inserted or changed by a database writer', async () => {
    const owner = await newOwner(database(), { USDC: '40' })
    await force(owner, '10')
    const [made] = await readSettlements(owner)
    const id = made?.id ?? ''
    const isUnsent = async () =>
      (
        await unsentSettlements(cardDependencies(database()), {
          chain: 'base-sepolia',
          at: noon,
          limit: 1000,
        })
      ).some(({ accountId }) => accountId === owner)
    const alarms = async () =>
      (await openAlarms(database())).filter(({ objectId }) => objectId === id).map(({ reason }) => reason)
    const set = (units: bigint) =>
      database().kysely.updateTable('card_settlement').set({ units }).where('id', '=', id).execute()
    await releaseSpend(database(), { decisionId: made?.decision_id ?? '', at: noon })
    await endSettlements(database(), noon)
    await set(40_000_000n)
    const later = new Date(noon.getTime() + 60_000)
    await retrySettlements(cardDependencies(database()), later)
    expect(await isUnsent()).toBe(false)
    expect(await alarms()).toEqual(['settlement_not_authentic'])
    // Stopped until a person has reviewed it, whatever its row contains by then.
    await set(10_000_000n)
    await retrySettlements(cardDependencies(database()), later)
    expect(await isUnsent()).toBe(false)
    await resolveAlarm(database(), {
      ...{ domain: 'cards', objectId: id, reason: 'settlement_not_authentic' },
      ...{ note: 'restored', by: owner, at: later },
    })
    await retrySettlements(cardDependencies(database()), later)
    expect(await settleAll(database(), owner)).toEqual(['USDC 10000000'])
  })
})
