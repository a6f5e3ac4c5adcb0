/** No event without its effect, and no effect without its event, after any course of spends, some of them rolled back. */
import fc from 'fast-check'
import { sql } from 'kysely'
import { beforeAll, expect, it } from 'vitest'
import { reserveSpends } from '../../../src/books/spending/reserve.ts'
import type { SpendRequest } from '../../../src/books/spending/spend-request.ts'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../src/core/base/clock.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { findTransferOfDecision, insertTransfer } from '../../../src/rails/wallets/store.ts'
import { finishTransfer } from '../../../src/rails/wallets/transfers/finish-transfer.ts'
import {
  planTransfer,
  type TransferDependencies,
} from '../../../src/rails/wallets/transfers/send-transfer.ts'
import { type StoredEvent, viewEvent } from '../../../src/records/events/catalogue.ts'
import { publishEvents } from '../../../src/records/events/publish.ts'
import { readEvents } from '../../../src/records/events/read-events.ts'
import type { Connection, Database } from '../../../src/storage/database.ts'
import { buildSpend, deposit, openAccount, openKey } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import {
  applyCardEvents,
  buildPurchase,
  cardDependencies,
  decide,
  issueCard,
  newOwner,
} from '../../rails/cards/scene.ts'
import {
  openFundedAccount,
  outsideAddress,
  reserveOrder,
  sendingDependencies,
} from '../../rails/wallets/scene.ts'
import { expectEventsOfEffects } from './effects.ts'

const step = fc.oneof(
  fc.record({
    kind: fc.constant('transfer' as const),
    units: fc.bigInt({ min: 1n, max: 50n }),
    isInternal: fc.boolean(),
    ends: fc.array(fc.constantFrom('confirmed' as const, 'failed' as const), { maxLength: 2 }),
  }),
  fc.record({ kind: fc.constant('deny' as const), spends: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ kind: fc.constant('deposit' as const), units: fc.bigInt({ min: 1n, max: 9n }) }),
  fc.record({
    kind: fc.constant('card' as const),
    dollars: fc.constantFrom('5', '20', '900'),
    events: fc.array(
      fc.tuple(
        fc.constantFrom('clearing' as const, 'reversal' as const, 'refund' as const),
        fc.constantFrom('2', '5'),
      ),
      { maxLength: 3 },
    ),
  }),
  fc.constant({ kind: 'publish' as const }),
)

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

const steps: readonly Step[] = [
  { kind: 'transfer', units: 5n, isInternal: true, ends: ['confirmed', 'failed'] },
  { kind: 'transfer', units: 5n, isInternal: false, ends: ['failed'] },
  { kind: 'deny', spends: 2 },
  {
    kind: 'card',
    dollars: '20',
    events: [
      ['clearing', '5'],
      ['reversal', '2'],
    ],
  },
  { kind: 'card', dollars: '900', events: [] },
]
const everyKind = steps.flatMap((step) => [
  { step, isUndone: false },
  { step, isUndone: true },
])

onBothEngines('events of the money path', (database) => {
  let sending: TransferDependencies
  beforeAll(async () => {
    sending = sendingDependencies(
      database(),
      await createSimulatedChain({ clock: systemClock, log: silentLog }),
    )
  })

  it('are those of their effects, whatever is undone', async () => {
    const courses = fc.array(fc.record({ step, isUndone: fc.boolean() }), { minLength: 4, maxLength: 14 })
    await fc.assert(
      fc.asyncProperty(courses, async (course) => {
        const scene = await openScene(database(), sending)
        for (const { step, isUndone } of course)
          await undoneIf(isUndone, database(), (on) => scene.take(step, on))
        await expectEventsOfEffects(database())
      }),
      { numRuns: 12, examples: [[everyKind]] },
    )
    while ((await publishEvents(database(), systemClock())) > 0);
    await expectEventsOfEffects(database())
    // Every stored event is one of the catalogue.
    const { rows: events } = await sql<StoredEvent>`select * from published_event`.execute(database().kysely)
    expect(events.map(viewEvent)).toHaveLength(events.length)
    const types = new Set(events.map(({ type }) => type))
    for (const type of [
      'transfer.failed',
      'decision.denied',
      'deposit.credited',
      'card.reversed',
      'card.declined',
    ])
      expect(types).toContain(type)
  })

  it('appear in the order of their sequence, however late a transaction commits', async () => {
    const accountId = await openAccount(database(), 1n)
    while ((await publishEvents(database(), systemClock())) > 0);
    const reader = { accountId, keyId: null }
    const readAfter = async (after: bigint) =>
      (await readEvents(database(), reader, { after, types: null, limit: 100 })).map(
        ({ sequence }) => sequence,
      )
    const seen: bigint[] = []
    const read = async () => {
      await publishEvents(database(), systemClock())
      seen.push(...(await readAfter(seen.at(-1) ?? 0n)))
    }
    await read()
    // One connection only on PGlite: there, nothing can commit within the open transaction.
    const isOne = database().engine === 'pglite'
    const within = async () => {
      if (isOne) return
      await openKey(database(), accountId)
      await read()
    }
    await database().transaction(async (late) => {
      await openKey(late, accountId)
      await within()
      await within()
    })
    await read()
    expect(seen).toEqual(await readAfter(0n))
    expect(seen).toHaveLength(isOne ? 2 : 4)
  })
})

async function openScene(database: Database, sending: TransferDependencies) {
  const [payer, receiver] = [await openFundedAccount(sending), await openFundedAccount(sending)]
  const poor = await openAccount(database, 1n)
  const keyId = await openKey(database, poor)
  const owner = await newOwner(database, { USD: '100' })
  const card = await issueCard(database, owner)

  async function transfer(
    on: Database,
    units: bigint,
    isInternal: boolean,
    ends: readonly ('confirmed' | 'failed')[],
  ) {
    const parts = { ...sending, database: on }
    const { accountId } = payer
    const order = await reserveOrder(parts, {
      accountId,
      units,
      destination: isInternal ? receiver.address : outsideAddress,
    })
    const row = planTransfer(parts, order)(order.decisionId)
    await insertTransfer(on, { accountId, decisionId: order.decisionId, row })
    const sent = await findTransferOfDecision(on, order.decisionId)
    if (sent === undefined) throw new Error('the transfer was not written')
    for (const state of ends)
      await finishTransfer(
        parts,
        sent,
        state === 'confirmed'
          ? { state, transactionHash: `0x${'1'.repeat(64)}` }
          : { state, failure: 'the operation reverted' },
      )
  }

  return {
    take: async (taken: Step, on: Database): Promise<void> => {
      if (taken.kind === 'transfer') await transfer(on, taken.units, taken.isInternal, taken.ends)
      else if (taken.kind === 'deposit') await deposit(on, poor, taken.units)
      else if (taken.kind === 'publish') await publishEvents(on, systemClock())
      else if (taken.kind === 'deny') {
        const spends = Array.from(
          { length: taken.spends },
          (): SpendRequest => buildSpend({ accountId: poor, keyId }, 1_000_000n),
        )
        await reserveSpends(on, spends)
      } else {
        const parts = cardDependencies(on)
        const purchase = buildPurchase(card, taken.dollars)
        await decide(parts, purchase)
        await applyCardEvents(parts, purchase, 'pending', taken.events)
      }
    },
  }
}

/** Runs work in a transaction that may be rolled back. Its own transactions join it. */
async function undoneIf(
  isUndone: boolean,
  database: Database,
  work: (on: Database) => Promise<void>,
): Promise<void> {
  const undone = new Error('undone')
  await database
    .transaction(async (connection: Connection) => {
      await work({ ...database, ...connection, transaction: (inner) => inner(connection) })
      if (isUndone) throw undone
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error
    })
}
