/** Scenes of cards and debts, in the terms of stepped-scenes.ts. Each has one account, so that its ids need not be fixed. */
import { sql } from 'kysely'
import { collectDebt, dueDebts, sumOpenDebts } from '../../../src/books/debts/debts.ts'
import { external } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { toMoney } from '../../../src/core/money/money.ts'
import type { CardAuthorization, CardEvent } from '../../../src/providers/card-processor/port.ts'
import { createSnapshotRates } from '../../../src/providers/rates/sandbox.ts'
import { applyTransaction, closeAuthorization } from '../../../src/rails/cards/apply-transaction.ts'
import { endSettlements, retrySettlements, unsentSettlements } from '../../../src/rails/cards/settlements.ts'
import type { Database } from '../../../src/storage/database.ts'
import {
  applyCardEvents,
  beginPull,
  buildPurchase,
  cardDependencies,
  decide,
  endPull,
  fund,
  give,
  issueCard,
  newOwner,
  noon,
} from '../../rails/cards/scene.ts'
import type { Task } from './conductor.ts'
import { type Scene, unless } from './scenes.ts'

const chains = { all: [{ name: 'base-sepolia' }] }
/** After the pause of a settlement that was refused once. */
const later = new Date(noon.getTime() + 60_000)

/** Decides a purchase. @returns the reason. */
function purchase(request: CardAuthorization, webhookId: `evt_${string}`): Task {
  return async (session) => (await decide(cardDependencies(session), request, webhookId)).reason
}

/** Delivers one event of a purchase that goes on. */
function deliver(request: CardAuthorization, kind: CardEvent['kind'], dollars: string): Task {
  const { token, cardToken } = request
  const events = [{ token: `${kind} ${dollars}`, kind, units: toMoney('USD', dollars).units }]
  const transaction = { token, cardToken, events, merchantName: 'Corner Shop', wasAuthorized: true } as const
  return (session) =>
    applyTransaction(
      cardDependencies(session),
      { ...transaction, kind: 'transaction', status: 'pending' },
      { isForcePosted: false },
    )
}

/** Collects the debt that is due, as the job does. @returns what was collected, in cents. */
const collect: Task = async (session) => {
  const table = await createSnapshotRates().latest(noon)
  const [due] = await dueDebts(session, 1)
  if (due === undefined) return 0n
  return session.transaction((connection) =>
    collectDebt({ ...cardDependencies(session), chains, database: connection }, due, { table, at: noon }),
  )
}

async function readOwned(database: Database, accountId: string) {
  const rows = await balances(database, accountId)
  const sum = (asset: string, part: 'available' | 'held') =>
    rows.reduce((total, row) => (row.asset === asset ? total + row[part] : total), 0n)
  return {
    available: sum('USD', 'available'),
    held: sum('USD', 'held'),
    usdc: sum('USDC', 'available') + sum('USDC', 'held'),
  }
}

async function sumOwed(database: Database, accountId: string): Promise<bigint> {
  return (await sumOpenDebts(database, accountId)).reduce((sum, { units }) => sum + units, 0n)
}

const cardDay: Scene = {
  claim: 'the purchases of a card stay within its day',
  prepare: async (database) => {
    const owner = await newOwner(database, { USD: '500' })
    const card = await issueCard(database, owner, { dailyMax: 100_00n })
    const [one, two, three] = [
      buildPurchase(card, '60'),
      buildPurchase(card, '60'),
      buildPurchase(card, '60'),
    ]
    return {
      tasks: [purchase(one, 'evt_1'), purchase(two, 'evt_2'), purchase(three, 'evt_3')],
      findViolation: async () => {
        const { held } = await readOwned(database, owner)
        return unless(held === 60_00n, `${held} cents are held, where one purchase of 60 dollars fits 100`)
      },
    }
  },
}

const cardTwins: Scene = {
  claim: 'a purchase that is asked three times is decided once, with one answer',
  prepare: async (database) => {
    const owner = await newOwner(database, { USD: '500' })
    const ask = purchase(buildPurchase(await issueCard(database, owner), '60'), 'evt_1')
    return {
      tasks: [ask, ask, ask],
      findViolation: async (answers) => {
        const { held } = await readOwned(database, owner)
        const isOne = answers.every((answer) => answer === 'approved')
        return unless(
          held === 60_00n && isOne,
          `${held} cents are held, the answers are ${answers.join(', ')}`,
        )
      },
    }
  },
}

const cardParts: Scene = {
  claim: 'what a purchase has cleared, reversed and still holds is together what it held',
  prepare: async (database) => {
    const owner = await newOwner(database, { USD: '100' })
    const card = await issueCard(database, owner)
    const [one, two] = [buildPurchase(card, '50'), buildPurchase(card, '40')]
    await purchase(one, 'evt_1')(database)
    await purchase(two, 'evt_2')(database)
    return {
      tasks: [
        deliver(one, 'clearing', '30'),
        deliver(one, 'reversal', '40'),
        (session) =>
          closeAuthorization(cardDependencies(session), { token: one.token, status: 'expired', at: noon }),
      ],
      findViolation: async () => {
        const { available, held } = await readOwned(database, owner)
        return unless(
          available === 30_00n && held === 40_00n,
          `of 100 dollars, 30 cleared and 40 in another purchase, ${available} cents are available and ${held} held`,
        )
      },
    }
  },
}

const pull: Scene = {
  claim:
    'a purchase that is reversed or cleared as its money is pulled holds exactly what the books hold for it',
  prepare: async (database) => {
    const owner = await newOwner(database, { USDC: '100' })
    const bought = buildPurchase(await issueCard(database, owner), '60')
    await purchase(bought, 'evt_1')(database)
    const decisionId = await beginPull(database, owner)
    if (decisionId === null) throw new Error('nothing is pulled')
    return {
      tasks: [
        (session) => endPull(session, decisionId),
        deliver(bought, 'reversal', '25'),
        deliver(bought, 'clearing', '20'),
      ],
      findViolation: async (answers) => {
        const { rows } = await sql<{ place: string; held: bigint; promised: bigint }>`
          select b.place, b.held, coalesce((
              select sum(h.units) from card_hold h where h.place = b.place
            ), 0)::bigint + coalesce((select sum(s.units) from card_settlement s where s.place = b.place), 0)::bigint as promised
          from (
            select split_part(account, ':', 2) as place, units as held from balance where account like '%:held'
          ) b`.execute(database.kysely)
        const differing = rows.filter(({ held, promised }) => held !== promised)
        const texts = differing.map(({ place, held, promised }) => `${place} holds ${held}, for ${promised}`)
        return unless(differing.length === 0, `${answers.join(', ')}: ${texts.join('; ')}`)
      },
    }
  },
}

const debt: Scene = {
  claim: 'a debt is collected once, and before anything else is bought',
  prepare: async (database) => {
    const owner = await newOwner(database, {})
    const card = await issueCard(database, owner)
    const unasked = buildPurchase(card, '0')
    await applyCardEvents(cardDependencies(database), unasked, 'settled', [['clearing', '50']], true)
    await fund(database, owner, { USD: '120' })
    return {
      tasks: [collect, collect, purchase(buildPurchase(card, '60'), 'evt_1')],
      findViolation: async (answers) => {
        const { available, held } = await readOwned(database, owner)
        const owed = await sumOwed(database, owner)
        return unless(
          owed === 0n && available + held === 70_00n,
          `${answers.join(', ')}: ${owed} cents of 5000 are owed, ${available + held} of 12000 left`,
        )
      },
    }
  },
}

const settlement: Scene = {
  claim: 'a debt that stands for a settlement is paid by the chain or from the account, not by both',
  prepare: async (database) => {
    const parts = cardDependencies(database)
    const owner = await newOwner(database, { USDC: '50' })
    const bought = buildPurchase(await issueCard(database, owner), '20')
    await purchase(bought, 'evt_1')(database)
    await deliver(bought, 'clearing', '20')(database)
    const findAttempt = async () => {
      const [attempt] = await unsentSettlements(parts, { chain: 'base-sepolia', at: noon, limit: 1 })
      if (attempt === undefined) throw new Error('no settlement is being sent')
      return attempt.decisionId
    }
    await releaseSpend(database, { decisionId: await findAttempt(), at: noon })
    await endSettlements(database, noon)
    await retrySettlements(parts, later)
    const decisionId = await findAttempt()
    await fund(database, owner, { USD: '30' })
    return {
      tasks: [
        async (session) => {
          await settleSpend(session, { decisionId, destination: external('base-sepolia'), at: later })
          await endSettlements(session, later)
        },
        collect,
        async (session) => {
          await releaseSpend(session, { decisionId, at: later })
          await endSettlements(session, later)
        },
      ],
      findViolation: async () => {
        const { available, usdc } = await readOwned(database, owner)
        const owed = await sumOwed(database, owner)
        // 80 dollars less 20 for the purchase.
        return unless(
          available + usdc / 10_000n - owed === 60_00n,
          `${available} cents and ${usdc} micro-USDC are left, and ${owed} cents owed`,
        )
      },
    }
  },
}

const gift: Scene = {
  claim: 'a wallet that its owner gets holds nothing for purchases',
  prepare: async (database) => {
    const owner = await newOwner(database, { USDC: '100' })
    const card = await issueCard(database, owner)
    return {
      tasks: [
        purchase(buildPurchase(card, '20'), 'evt_1'),
        (session) =>
          give(session, owner).catch((error: unknown) => {
            if (!(error instanceof Failure) || error.code !== 'wallet_busy') throw error
          }),
        purchase(buildPurchase(card, '30'), 'evt_2'),
      ],
      findViolation: async (answers) => {
        const wallet = await database.kysely
          .selectFrom('wallet')
          .select('owner')
          .where('account_id', '=', owner)
          .executeTakeFirstOrThrow()
        const isGiven = JSON.stringify(wallet.owner).includes('passkey')
        const isHolding = answers.includes('approved')
        return unless(
          !(isGiven && isHolding),
          `the wallet was given, and purchases ended as ${answers.join(', ')}`,
        )
      },
    }
  },
}

/** Scenes by name. */
export const cardScenes = { cardDay, cardTwins, cardParts, pull, debt, settlement, gift } as const
