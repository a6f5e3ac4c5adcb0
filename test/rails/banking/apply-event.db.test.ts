import { expect, it } from 'vitest'
import { openAlarms, resolveAlarm } from '../../../src/books/alarms/alarms.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { insertPayout } from '../../../src/rails/banking/payout.ts'
import type { Database } from '../../../src/storage/database.ts'
import { buildSpend } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { dataKey, fund, listOwned, newOwner, noon } from '../cards/scene.ts'
import { applyDeposit, open, wallet } from './scene.ts'
import { insertTestRecipient } from './test-recipient.ts'

/** A payout of 10 USD, as it is before the provider has answered. */
async function insertTestPayout(database: Database, owner: string, decisionId: string): Promise<void> {
  const keeping = { database, settings: { dataKey } }
  const recipientId = await insertTestRecipient(keeping, owner)
  await insertPayout(keeping, {
    id: `payout ${owner}`,
    accountId: owner,
    keyId: null,
    decisionId,
    recipientId,
    place: 'bank',
    money: { asset: 'USD', units: 1000n },
    fee: 25n,
    currency: 'USD',
    recipientUnits: 975n,
    rate: '1',
    eta: noon,
    quoteId: null,
    reference: null,
    createdAt: noon,
  })
}

onBothEngines('a virtual account', (database) => {
  it('is one per currency, under repeated and concurrent calls', async () => {
    const owner = await newOwner(database(), {})
    const opened = await Promise.all(Array.from({ length: 5 }, () => open(database(), owner)))
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1)
    expect((await open(database(), owner, { currency: 'EUR' })).id).not.toBe(opened[0]?.id)
    await expect(open(database(), owner, { currency: 'GBP', mode: 'production' })).rejects.toMatchObject({
      code: 'kyc_required',
    })
  })

  it('credits a deposit once, at its final state, as cash or as the token of its destination', async () => {
    const owner = await newOwner(database(), {})
    const cash = await open(database(), owner)
    for (const state of ['funds_received', 'payment_submitted'])
      expect(await applyDeposit(database(), cash, state)).toBeNull()
    expect(await listOwned(database(), owner)).toEqual([])
    await Promise.all(Array.from({ length: 5 }, () => applyDeposit(database(), cash, 'payment_processed')))
    expect(await listOwned(database(), owner)).toEqual(['USD 12.5 + 0'])
    const pounds = await open(database(), owner, { currency: 'GBP', destination: wallet })
    expect(await applyDeposit(database(), pounds, 'payment_processed')).toEqual({
      token: 'USDC',
      to: wallet.address,
      units: 15_809_978n,
    })
    expect(await listOwned(database(), owner)).toEqual(['USD 12.5 + 0', 'USDC 15.809978 + 0'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('credits no amount in another currency', async () => {
    const owner = await newOwner(database(), {})
    const rupees = await open(database(), owner, { currency: 'INR' })
    for (const currency of ['usd', 'usdc'])
      await expect(
        applyDeposit(database(), rupees, 'payment_processed', { currency, objectId: `${owner} ${currency}` }),
      ).rejects.toMatchObject({
        code: 'invalid_request',
      })
    for (const amount of ['-12.50', '0', '1e2', '12.505', 'NaN', '', '1000000000000', null])
      await expect(
        applyDeposit(database(), rupees, 'payment_processed', { amount, objectId: `${owner} ${amount}` }),
      ).rejects.toMatchObject({
        code: 'invalid_request',
      })
    expect(await listOwned(database(), owner)).toEqual([])
    await applyDeposit(database(), rupees, 'payment_processed', { currency: 'inr' })
    expect(await listOwned(database(), owner)).toEqual(['INR 12.5 + 0'])
  })

  it('leaves deliveries on chain to the chain’s own watch', async () => {
    const owner = await newOwner(database(), {})
    const account = await open(database(), owner, { destination: wallet })
    expect(await applyDeposit(database(), account, 'payment_processed', {}, false)).toBeNull()
    expect(await listOwned(database(), owner)).toEqual([])
  })

  it('results in the same books in every order, and never moves back', async () => {
    const orders = [
      ['funds_received', 'payment_processed', 'refunded'],
      ['refunded', 'payment_processed', 'funds_received'],
      ['payment_processed', 'refunded', 'payment_processed'],
      ['payment_processed', 'funds_received', 'refunded'],
      ['payment_processed', 'refund_in_flight', 'refunded'],
      ['refund_in_flight', 'refunded', 'payment_processed'],
    ]
    for (const states of orders) {
      const owner = await newOwner(database(), { USD: '1' })
      const account = await open(database(), owner)
      for (const state of states) await applyDeposit(database(), account, state)
      expect([states, await listOwned(database(), owner)]).toEqual([states, ['USD 1 + 0']])
    }
    const owner = await newOwner(database(), {})
    const account = await open(database(), owner)
    for (const state of ['payment_processed', 'in_review', 'funds_received'])
      await applyDeposit(database(), account, state)
    const row = await database()
      .kysely.selectFrom('deposit')
      .select('state')
      .where('id', '=', `deposit-${account.id}`)
      .executeTakeFirst()
    expect(row?.state).toBe('payment_processed')
    expect(await listOwned(database(), owner)).toEqual(['USD 12.5 + 0'])
  })

  it.each([
    ['payment_processed', 'refund_in_flight', 'refund_failed'],
    ['refund_in_flight', 'payment_processed', 'refund_failed'],
    ['refund_in_flight', 'refund_failed', 'payment_processed'],
    ['refund_failed', 'refund_in_flight', 'payment_processed'],
  ])('keeps a deposit whose refund fails: %s, %s, %s', async (...states) => {
    const owner = await newOwner(database(), {})
    const account = await open(database(), owner)
    for (const state of states) await applyDeposit(database(), account, state)
    expect(await listOwned(database(), owner)).toEqual(['USD 12.5 + 0'])
  })

  it('counts an event once, and ignores unknown events', async () => {
    const owner = await newOwner(database(), {})
    const account = await open(database(), owner)
    const eventId = newId('evt', noon)
    await applyDeposit(database(), account, 'payment_processed', { eventId, objectId: 'one' })
    await applyDeposit(database(), account, 'payment_processed', { eventId, objectId: 'two' })
    await applyDeposit(database(), account, 'payment_processed', {
      virtualAccount: 'nobody',
      objectId: 'three',
    })
    await applyDeposit(database(), account, 'a new state', { objectId: 'four' })
    await applyDeposit(database(), account, 'x', { kind: 'other', virtualAccount: null })
    expect(await listOwned(database(), owner)).toEqual(['USD 12.5 + 0'])
    for (const amount of ['12.501', '0', '-1', 'x', null])
      await expect(
        applyDeposit(database(), account, 'payment_processed', { objectId: `bad ${amount}`, amount }),
      ).rejects.toMatchObject({
        code: 'invalid_request',
      })
  })

  it.each([
    ['another amount than before', { amount: '12500.00' }, 'another_amount'],
    ['another currency', { currency: 'EUR' }, 'another_currency'],
    ['another customer', { customer: 'cust_other' }, 'another_customer'],
    ['an amount with an exponent', { amount: '1e3' }, 'no_amount'],
  ])('is stopped by an event with %s, and resumes when a person clears it', async (_what, lie, reason) => {
    const owner = await newOwner(database(), {})
    const account = await open(database(), owner)
    await database()
      .kysely.updateTable('virtual_account')
      .set({ provider_customer: 'cust_own' })
      .where('id', '=', account.id)
      .execute()
    const objectId = `deposit-${account.id}`
    await applyDeposit(database(), account, 'funds_received', { customer: 'cust_own' })
    await expect(applyDeposit(database(), account, 'payment_processed', lie)).rejects.toMatchObject({
      code: 'invalid_request',
    })
    const raised = (await openAlarms(database())).filter((alarm) => alarm.objectId === objectId)
    expect(raised).toMatchObject([{ domain: 'banking', reason, times: 1 }])
    await expect(applyDeposit(database(), account, 'payment_processed')).rejects.toMatchObject({
      code: 'conflict',
    })
    expect(await listOwned(database(), owner)).toEqual([])
    const resolution = { by: owner, note: 'The bank has corrected it.', at: noon }
    await resolveAlarm(database(), { domain: 'banking', objectId, reason, ...resolution })
    await applyDeposit(database(), account, 'payment_processed')
    expect(await listOwned(database(), owner)).toEqual(['USD 12.5 + 0'])
  })

  it('an event with another account’s id is booked nowhere, and raises an alarm', async () => {
    const [owner, other] = [await newOwner(database(), {}), await newOwner(database(), {})]
    const [account, another] = [await open(database(), owner), await open(database(), other)]
    const objectId = `deposit-${account.id}`
    await applyDeposit(database(), account, 'funds_received')
    expect(await applyDeposit(database(), another, 'payment_processed', { objectId })).toBeNull()
    expect(await listOwned(database(), other)).toEqual([])
    const raised = (await openAlarms(database())).filter((alarm) => alarm.objectId === objectId)
    expect(raised).toMatchObject([{ domain: 'banking', reason: 'another_account' }])
  })

  it('is deactivated and reactivated by the provider', async () => {
    const owner = await newOwner(database(), {})
    const account = await open(database(), owner)
    const status = async () =>
      (
        await database()
          .kysely.selectFrom('virtual_account')
          .select('status')
          .where('id', '=', account.id)
          .executeTakeFirst()
      )?.status
    await applyDeposit(database(), account, 'deactivation', { kind: 'account' })
    expect(await status()).toBe('deactivated')
    await applyDeposit(database(), account, 'reactivation', { kind: 'account' })
    expect(await status()).toBe('active')
    await applyDeposit(database(), account, 'deactivated', { kind: 'account' })
    await applyDeposit(database(), account, 'activated', { kind: 'account' })
    expect(await status()).toBe('deactivated')
  })

  it('is replaced after its deactivation', async () => {
    const owner = await newOwner(database(), {})
    const closed = await open(database(), owner)
    await applyDeposit(database(), closed, 'deactivation', { kind: 'account' })
    const opened = await Promise.all(Array.from({ length: 3 }, () => open(database(), owner)))
    const [replacement] = opened
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1)
    expect(replacement).toMatchObject({ status: 'active', ordinal: 1 })
    expect(replacement?.id).not.toBe(closed.id)
    await applyDeposit(database(), closed, 'reactivation', { kind: 'account' })
    expect((await open(database(), owner)).id).toBe(closed.id)
  })

  it('settles a payout, releases one that was never sent, and reverses one that was returned, each once', async () => {
    const ends = []
    for (const states of [
      ['payment_processed'],
      ['canceled'],
      ['payment_processed', 'returned'],
      ['returned', 'payment_processed'],
    ]) {
      const owner = await newOwner(database(), {})
      const account = await open(database(), owner)
      await fund(database(), owner, { USD: '30' })
      const spend = buildSpend({ accountId: owner, keyId: null }, 1000n, {
        money: { asset: 'USD', units: 1000n },
        place: 'bank',
      })
      await reserveSpend(database(), spend)
      await insertTestPayout(database(), owner, spend.decisionId)
      for (const state of states.flatMap((each) => [each, each]))
        await applyDeposit(database(), account, state, {
          kind: 'payout',
          objectId: `bank ${owner}`,
          reference: `payout ${owner}`,
          virtualAccount: null,
          amount: '10.00',
          currency: 'usd',
        })
      ends.push(...(await listOwned(database(), owner)))
    }
    expect(ends).toEqual(['USD 20 + 0', 'USD 30 + 0', 'USD 30 + 0', 'USD 30 + 0'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })
})
