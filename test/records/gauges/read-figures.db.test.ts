/** An operator's figures on both engines: what counts, since when, and in which rail. */
import { expect, it } from 'vitest'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { newId } from '../../../src/core/base/ids.ts'
import type { RateTable } from '../../../src/core/money/rate-table.ts'
import { readFigures } from '../../../src/records/gauges/read-figures.ts'
import { noon, openAccount, place, spendOf } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'

const dollars: RateTable = {
  source: 'ecb',
  asOf: noon,
  perEuro: new Map([
    ['EUR', '1'],
    ['USD', '1.1'],
  ]),
}
const HOUR_MS = 3_600_000

onBothEngines('the figures', (database) => {
  const ago = (hours: number) => new Date(noon.getTime() - hours * HOUR_MS)
  const spend = async (accountId: string, hours: number, category: string, changes = {}) => {
    const at = ago(hours)
    const request = spendOf({ accountId, keyId: null }, 2_000_000n, {
      at,
      decisionId: newId('dec', at),
      facts: { category, amount: '2', asset: 'USDC' },
      ...changes,
    })
    await reserveSpend(database(), request)
    return request.decisionId
  }

  it('count each rail in a day and in seven days, without what came back or is older', async () => {
    const accountId = await openAccount(database(), 1_000_000_000n)
    await spend(accountId, 1, 'transfer')
    await spend(accountId, 25, 'transfer')
    await spend(accountId, 169, 'transfer')
    await spend(accountId, 2, 'payout')
    const back = await spend(accountId, 3, 'transfer')
    await releaseSpend(database(), { decisionId: back, at: noon })
    // Money that a card's settlement moves was counted when the card paid.
    await spend(accountId, 1, 'transfer', { operation: 'cards.settle' })
    const { volume } = await readFigures(database(), dollars, noon)
    const of = (rail: string) => volume.find((one) => one.rail === rail)
    expect(of('wallet-transfer')).toEqual({
      rail: 'wallet-transfer',
      day: { micros: 2_000_000n, count: 1 },
      week: { micros: 4_000_000n, count: 2 },
    })
    expect(of('bank-payout')?.day).toEqual({ micros: 2_000_000n, count: 1 })
    expect(of('investing')?.week).toEqual({ micros: 0n, count: 0 })
  })

  it('name each violated rule of a refusal, and missing money', async () => {
    const accountId = await openAccount(database(), 0n)
    const buildViolation = (rule: string) => ({
      rule,
      limit: null,
      used: null,
      requested: null,
      remaining: null,
      resetsAt: null,
    })
    const violations = [buildViolation('per_transaction'), buildViolation('category')]
    await spend(accountId, 1, 'transfer', { violations })
    await spend(accountId, 30, 'transfer', { violations: violations.slice(0, 1) })
    await spend(accountId, 1, 'transfer')
    const { refusals } = await readFigures(database(), dollars, noon)
    expect(refusals).toEqual([
      { rule: 'per_transaction', day: 1, week: 2 },
      { rule: 'category', day: 1, week: 1 },
      { rule: 'insufficient_funds', day: 1, week: 1 },
    ])
  })

  it('add up what cards promise of wallets that their owners can empty, and name the largest account', async () => {
    const { kysely } = database()
    const promise = async (kind: 'gateway' | 'passkey', micros: bigint) => {
      const accountId = await openAccount(database(), 0n)
      const id = newId('tx', noon)
      const address = `0x${accountId.slice(-20).padStart(40, '0')}`
      await kysely
        .insertInto('wallet')
        .values({
          account_id: accountId,
          address,
          chain: place,
          created_at: noon,
          origin: JSON.stringify({ kind }),
          owner: JSON.stringify({ kind }),
        })
        .execute()
      await kysely
        .insertInto('card_authorization')
        .values({
          id,
          processor_token: id,
          webhook_id: null,
          fingerprint: null,
          card_id: 'card_1',
          account_id: accountId,
          key_id: null,
          decision_id: null,
          day: '2026-11-20',
          reason: 'approved',
          status: 'pending',
          units: 500n,
          approved: 500n,
          about: '{}',
          created_at: noon,
          updated_at: noon,
        })
        .execute()
      await kysely
        .insertInto('card_hold')
        .values({ authorization_id: id, ordinal: 1, place, asset: 'USDC', units: micros, micros })
        .execute()
    }
    await promise('passkey', 5_000_000n)
    await promise('passkey', 7_500_000n)
    // The gateway's own wallets cannot be emptied by their owners.
    await promise('gateway', 90_000_000n)
    const { float, volume } = await readFigures(database(), dollars, noon)
    expect(float).toEqual({ micros: 12_500_000n, largest: 7_500_000n, accounts: 2 })
    expect(volume.find(({ rail }) => rail === 'card-payments')?.day).toEqual({
      micros: 15_000_000n,
      count: 3,
    })
  })

  it('value deposits at the rates of the moment, and leave out reversed ones', async () => {
    const { kysely } = database()
    const accountId = await openAccount(database(), 0n)
    await kysely
      .insertInto('virtual_account')
      .values({
        id: 'va_1',
        account_id: accountId,
        currency: 'EUR',
        ordinal: 1,
        status: 'active',
        provider_id: 'p_1',
        provider_customer: null,
        holder_name: 'Ada',
        bank_name: 'Bank',
        bank_address: 'Street',
        instructions: '{}',
        reference: 'R',
        token: null,
        chain: null,
        address: null,
        created_at: noon,
      })
      .execute()
    const deposit = { virtual_account_id: 'va_1', account_id: accountId, said_units: null, place: 'bank' }
    for (const [id, rank, units] of [
      ['dep_1', 5, 10_000n],
      ['dep_2', 6, 99_000n],
      ['dep_3', 1, 99_000n],
    ] as const)
      await kysely
        .insertInto('deposit')
        .values({
          ...deposit,
          id,
          rank,
          units,
          state: 'x',
          asset: 'EUR',
          created_at: noon,
          updated_at: ago(1),
        })
        .execute()
    const { volume } = await readFigures(database(), dollars, noon)
    // 100 euros at 1.1 dollars; what was reversed or has not arrived does not count.
    expect(volume.find(({ rail }) => rail === 'bank-deposit')?.day).toEqual({
      micros: 110_000_000n,
      count: 1,
    })
  })

  it('date the oldest item of a queue', async () => {
    const waiting = { processor_token: 't', message: '{}' }
    for (const [webhook_id, hours] of [
      ['wh_1', 2],
      ['wh_2', 5],
    ] as const)
      await database()
        .kysely.insertInto('card_early')
        .values({ ...waiting, webhook_id, received_at: ago(hours) })
        .execute()
    const { queues } = await readFigures(database(), dollars, noon)
    expect(queues.find(({ queue }) => queue === 'card_messages')).toEqual({
      queue: 'card_messages',
      waiting: 2,
      oldestAt: ago(5),
    })
    expect(queues.find(({ queue }) => queue === 'alarms')).toEqual({
      queue: 'alarms',
      waiting: 0,
      oldestAt: null,
    })
  })
})
