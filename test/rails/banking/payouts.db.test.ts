import { sql } from 'kysely'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { openAlarms } from '../../../src/books/alarms/alarms.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { decideReview } from '../../../src/books/spending/reviews.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { authenticateSession } from '../../../src/people/identity/sessions/sessions.ts'
import type { BankingProvider, PayoutOrder, PayoutReport } from '../../../src/providers/banking/port.ts'
import { applyBankingEvent } from '../../../src/rails/banking/apply-event.ts'
import { claimPayouts } from '../../../src/rails/banking/payout.ts'
import { resumePayout } from '../../../src/rails/banking/resume-payout.ts'
import { recordMint } from '../../../src/rails/wallets/reconcile/owed-mints.ts'
import { findWallet } from '../../../src/rails/wallets/store.ts'
import { publishNewEvents } from '../../../src/server/jobs/publish-events.ts'
import { repayMints } from '../../../src/server/jobs/repay-mints.ts'
import { settlePayouts } from '../../../src/server/jobs/settle-payouts.ts'
import guest from '../../../tools/auth/guest.ts'
import create from '../../../tools/banking/payouts/create.ts'
import get from '../../../tools/banking/payouts/get.ts'
import list from '../../../tools/banking/payouts/list.ts'
import addRecipient from '../../../tools/banking/recipients/create.ts'
import listRecipients from '../../../tools/banking/recipients/list.ts'
import removeRecipient from '../../../tools/banking/recipients/remove.ts'
import erase from '../../../tools/compliance/personal-data/erase.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, servicesOn } from '../../kernel/scene.ts'
import { newSignedIn, type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'
import { listOwned } from '../cards/scene.ts'
import { movedClock } from '../investing/scene.ts'
import { american } from './american.ts'
import { failingAt } from './failing-at.ts'

const quiet = new AbortController().signal

const german = {
  currency: 'EUR',
  name: 'Emmy Noether',
  country: 'DE',
  account: { iban: 'DE89 3704 0044 0532 0130 00', bic: 'COBADEFFXXX' },
}

onBothEngines('payouts', (database) => {
  const clock = movedClock()
  let line: 'up' | 'lost answers' | 'down' | 'refusing' = 'up'
  const sent: PayoutOrder[] = []
  const canceled: string[] = []
  /** Members of the bank’s report that replace its own. */
  let answered: Partial<PayoutReport> = {}
  let services: Services
  let owner: SignedIn

  beforeAll(async () => {
    const made = await servicesOn(database(), { clock })
    const down = () => new Failure('provider_unavailable', 'The bank gave no usable answer.')
    const shaky: BankingProvider = {
      ...made.bankingProvider,
      sendPayout: async (order) => {
        if (line === 'down') throw down()
        if (line === 'refusing') throw new Failure('payout_rejected', 'No.', { reason: 'provider_refused' })
        sent.push(order)
        const report = { ...(await made.bankingProvider.sendPayout(order)), ...answered }
        if (line === 'lost answers') throw down()
        return report
      },
      cancelPayout: async (id) => {
        if (line !== 'up') throw down()
        canceled.push(id)
      },
      findPayout: async (id, now) => {
        if (line === 'down') throw down()
        return made.bankingProvider.findPayout(id, now)
      },
    }
    services = { ...made, bankingProvider: shaky }
  })
  beforeEach(async () => {
    line = 'up'
    answered = {}
    sent.length = 0
    canceled.length = 0
    clock.forward(3_600_000)
    const { body } = await run(guest, buildCall(services, { kind: 'public' }, { now: clock() }), {})
    const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
    owner = await signInAgain(services, account.id, clock())
  })

  const call = async (tool: Parameters<SignedIn['call']>[0], input: unknown, idempotencyKey?: string) => {
    owner = await signInAgain(services, owner.accountId, clock())
    return (
      await owner.call(tool, input, {
        at: clock(),
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      })
    ).body
  }
  const recipient = async (changes: object = american) => String((await call(addRecipient, changes)).id)
  const cash = async () =>
    (await listOwned(database(), owner.accountId)).find((row) => row.startsWith('USD '))
  const usdc = async () =>
    (await listOwned(database(), owner.accountId)).find((row) => row.startsWith('USDC '))
  const later = async (milliseconds = 5_000) => {
    clock.forward(milliseconds)
    await settlePayouts(services, quiet)
  }
  const readState = async (id: unknown) => (await call(get, { id })).status
  const reasons = async (id: unknown) =>
    (await openAlarms(database())).filter(({ objectId }) => objectId === id).map(({ reason }) => reason)
  const report = async (id: string, state: string, changes: object = {}) =>
    applyBankingEvent(
      { ...services, isBookedHere: true, oweMint: recordMint(services) },
      {
        eventId: newId('evt', clock()),
        type: 'updated',
        kind: 'payout',
        objectId: `bank_${id}`,
        reference: id,
        state,
        virtualAccount: null,
        amount: '100',
        currency: 'usd',
        customer: null,
        sender: null,
        memo: null,
        ...changes,
      },
      clock(),
    )
  const readEvents = async (id: string) => {
    await publishNewEvents(services, quiet)
    const { rows } = await sql<{
      type: string
    }>`select type from published_event where object_id = ${id} order by sequence`.execute(database().kysely)
    return rows.map(({ type }) => type)
  }
  const expectSoundBooks = async () =>
    expect(await trialBalance(database())).toMatchObject({ balanced: true })

  it('hold the money until the bank has paid, fee included, and tell of each step once', async () => {
    const body = await call(create, {
      recipientId: await recipient(),
      amount: '100',
      reference: 'Invoice 42',
    })
    expect(body).toMatchObject({
      status: 'pending',
      amount: '100',
      asset: 'USD',
      fee: '0.25',
      currency: 'USD',
      recipientAmount: '99.75',
      rate: '1',
      reference: 'Invoice 42',
    })
    expect(await cash()).toBe('USD 400 + 100')
    const id = String(body.id)
    await report(id, 'payment_submitted')
    await report(id, 'payment_submitted')
    expect(await readState(id)).toBe('sent')
    await later()
    await later()
    expect(await readState(id)).toBe('paid')
    expect(await cash()).toBe('USD 400 + 0')
    expect(await readEvents(id)).toEqual(['payout.sent', 'payout.paid'])
    await expectSoundBooks()
  })

  it('payouts in another currency arrive at the rate of the answer, rounded down', async () => {
    const body = await call(create, { recipientId: await recipient(german), amount: '100' })
    // 99.50 USD at 1 / 1.0705, less half a percent.
    expect(body).toMatchObject({
      currency: 'EUR',
      fee: '0.5',
      rate: '0.9294722092',
      recipientAmount: '92.48',
    })
    const record = await database()
      .kysely.selectFrom('travel_rule')
      .select(['status', 'destination', 'sealed'])
      .where('decision_id', '=', String(body.decisionId))
      .executeTakeFirstOrThrow()
    expect(record).toMatchObject({ status: 'not_required', destination: body.recipientId })
    expect(Buffer.from(record.sealed ?? []).toString('latin1')).not.toContain('Noether')
  })

  it('payouts with a lost answer stay held, and are sent again under the same id', async () => {
    line = 'lost answers'
    const { id } = await call(create, { recipientId: await recipient(), amount: '100' })
    expect(await readState(id)).toBe('pending')
    expect(await cash()).toBe('USD 400 + 100')
    line = 'up'
    await later()
    await later()
    expect(await readState(id)).toBe('paid')
    expect(new Set(sent.map((order) => order.id))).toEqual(new Set([id]))
    expect(await cash()).toBe('USD 400 + 0')
    await expectSoundBooks()
  })

  it('payouts that never reached the bank are sent once it is back', async () => {
    line = 'down'
    const { id } = await call(create, { recipientId: await recipient(), amount: '100' })
    await later()
    expect(await cash()).toBe('USD 400 + 100')
    line = 'up'
    await later()
    expect(sent).toHaveLength(1)
    await later()
    expect(await readState(id)).toBe('paid')
  })

  it('payouts without an answer for most of a day are not sent again: an administrator decides', async () => {
    line = 'down'
    const { id } = await call(create, { recipientId: await recipient(), amount: '100' })
    line = 'up'
    await later(21 * 60 * 60_000)
    expect(sent).toEqual([])
    expect(await reasons(id)).toEqual(['no_answer'])
    expect(await cash()).toBe('USD 400 + 100')
  })

  it('payouts that the bank refuses give their money back, and a repeat gets the same refusal', async () => {
    const recipientId = await recipient()
    line = 'refusing'
    const refused = { code: 'payout_rejected', members: { reason: 'provider_refused' } }
    await expect(call(create, { recipientId, amount: '100' }, 'k1')).rejects.toMatchObject(refused)
    line = 'up'
    await expect(call(create, { recipientId, amount: '100' }, 'k1')).rejects.toMatchObject(refused)
    expect(await cash()).toBe('USD 500 + 0')
    expect(sent).toEqual([])
    await expectSoundBooks()
  })

  it('payouts that the bank refuses after a silence stay held, because the first request may have been accepted', async () => {
    line = 'lost answers'
    const { id } = await call(create, { recipientId: await recipient(), amount: '100' })
    line = 'refusing'
    await later()
    expect(await reasons(id)).toEqual(['refused_after_silence'])
    expect(await cash()).toBe('USD 400 + 100')
  })

  it('payouts that come back before or after they were paid are in the account again, once', async () => {
    for (const states of [
      ['returned', 'payment_processed', 'returned'],
      ['payment_processed', 'refund_in_flight', 'returned', 'refunded', 'payment_processed'],
    ]) {
      const { id } = await call(create, { recipientId: await recipient(), amount: '100' })
      for (const state of states) await report(String(id), state)
      expect(await readState(id)).toBe('returned')
      expect((await readEvents(String(id))).at(-1)).toBe('payout.returned')
    }
    expect(await cash()).toBe('USD 500 + 0')
    await expectSoundBooks()
  })

  it('payouts that failed never left', async () => {
    const { id } = await call(create, { recipientId: await recipient(), amount: '100' })
    await report(String(id), 'error')
    expect(await call(get, { id })).toMatchObject({ status: 'failed', reason: 'error' })
    expect(await cash()).toBe('USD 500 + 0')
  })

  it('payouts whose reports contradict them stop, with their money held', async () => {
    const { id } = await call(create, { recipientId: await recipient(), amount: '100' })
    await expect(report(String(id), 'returned', { amount: '1' })).rejects.toMatchObject({
      code: 'invalid_request',
    })
    expect(await reasons(id)).toEqual(['another_amount'])
    await expect(report(String(id), 'returned')).rejects.toMatchObject({ code: 'conflict' })
    await later()
    expect(await cash()).toBe('USD 400 + 100')
  })

  it('over one balance never spend more than there is', { timeout: 60_000 }, async () => {
    const recipientId = await recipient()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 12 }, () => owner.call(create, { recipientId, amount: '90' }, { at: clock() })),
    )
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    expect(refused).toHaveLength(7)
    for (const reason of refused) expect(reason).toMatchObject({ code: 'insufficient_funds' })
    await Promise.all([settlePayouts(services, quiet), settlePayouts(services, quiet)])
    await later()
    await later()
    expect(await cash()).toBe('USD 50 + 0')
    expect(sent).toHaveLength(5)
    await expectSoundBooks()
  })

  it('are not accepted while the rail’s controls are unavailable, or the sanctions list is', async () => {
    const recipientId = await recipient()
    const ask = async (changes: Partial<Services>) =>
      run(create, buildCall({ ...services, ...changes }, await authenticate(), { now: clock() }), {
        recipientId,
        amount: '100',
      })
    const railControls = {
      ...services.railControls,
      read: () => Promise.reject(new Failure('controls_unavailable', 'gone')),
    }
    await expect(ask({ railControls })).rejects.toMatchObject({ code: 'controls_unavailable' })
    const sanctions = { latest: () => Promise.reject(new Failure('screening_unavailable', 'gone')) }
    await expect(ask({ sanctions })).rejects.toMatchObject({ code: 'screening_unavailable' })
    expect(await cash()).toBe('USD 500 + 0')
    expect(sent).toEqual([])
  })

  it('never result from a reservation whose process died before it wrote one', async () => {
    const recipientId = await recipient()
    const broken = { ...services, clock, database: failingAt(services.database, 'banking_insert_payout') }
    await expect(
      run(create, buildCall(broken, await authenticate(), { now: clock() }), { recipientId, amount: '100' }),
    ).rejects.toThrow('the process died')
    expect(await cash()).toBe('USD 400 + 100')
    await later(31_000)
    expect(await cash()).toBe('USD 500 + 0')
    expect(sent).toEqual([])
  })

  it('payouts to a name on a sanctions list wait for a person, and pass once after a release', async () => {
    const [listed = ''] = (await services.sanctions.latest()).names
    const recipientId = await recipient({ ...american, name: listed })
    const asked = { recipientId, amount: '100' }
    await expect(call(create, asked)).rejects.toMatchObject({
      code: 'aml_blocked',
      members: { screening: { result: 'review', lists: ['recipient_name'] } },
    })
    const review = await database()
      .kysely.selectFrom('aml_review')
      .select('id')
      .where('account_id', '=', owner.accountId)
      .executeTakeFirstOrThrow()
    const { accountId: decidedBy } = await newSignedIn(services, { at: clock() })
    await decideReview(services, {
      id: review.id,
      decidedBy,
      status: 'released',
      reason: 'Another person of this name.',
      at: clock(),
    })
    expect(await call(create, asked)).toMatchObject({ status: 'pending' })
    await expect(call(create, asked)).rejects.toMatchObject({ code: 'aml_blocked' })
    expect(await cash()).toBe('USD 400 + 100')
  })

  it('payouts to an embargoed country are blocked', async () => {
    const recipientId = await recipient({ ...american, country: 'KP' })
    await expect(call(create, { recipientId, amount: '100' })).rejects.toMatchObject({
      code: 'aml_blocked',
      members: { screening: { result: 'blocked', lists: ['embargo'] } },
    })
  })

  it('keep their record when their recipient is removed or personal data is erased', async () => {
    const recipientId = await recipient()
    const { id } = await call(create, { recipientId, amount: '100', reference: 'Rent' })
    await later()
    await call(removeRecipient, { id: recipientId })
    expect((await call(listRecipients, {})).recipients).toEqual([])
    await expect(call(create, { recipientId, amount: '100' })).rejects.toMatchObject({ code: 'not_found' })
    const other = await recipient()
    await call(erase, {})
    const rows = await database()
      .kysely.selectFrom('payout_recipient')
      .select(['id', 'sealed', 'last4'])
      .where('account_id', '=', owner.accountId)
      .execute()
    expect(rows.map((row) => row.id).sort()).toEqual([recipientId, other].sort())
    expect(rows.every(({ sealed, last4 }) => sealed === null && last4 === null)).toBe(true)
    expect((await call(list, {})).payouts).toMatchObject([{ id, reference: null }])
  })

  it('payouts that may still have to be sent keep the data of their recipient', async () => {
    const recipientId = await recipient()
    line = 'down'
    await call(create, { recipientId, amount: '100' })
    await expect(call(removeRecipient, { id: recipientId })).rejects.toMatchObject({ code: 'conflict' })
    await expect(call(erase, {})).rejects.toMatchObject({ code: 'conflict' })
  })

  it('payouts of USDC leave on the chain once the bank has accepted them, and come back there', async () => {
    const body = await call(create, { recipientId: await recipient(), amount: '100', asset: 'USDC' })
    expect(body).toMatchObject({ asset: 'USDC', fee: '0.25', recipientAmount: '99.75', status: 'pending' })
    const id = String(body.id)
    const transfer = await database()
      .kysely.selectFrom('transfer')
      .select(['state', 'units', 'destination'])
      .where('decision_id', '=', String(body.decisionId))
      .executeTakeFirstOrThrow()
    expect(transfer).toMatchObject({ state: 'confirmed', units: 100_000_000n })
    expect(await usdc()).toBe('USDC 900 + 0')
    await later()
    await later()
    expect(await readState(id)).toBe('paid')
    for (const state of ['returned', 'refunded'])
      await report(id, state, { objectId: `bank_${id}`, amount: '100.0', currency: 'usdc' })
    expect(await readState(id)).toBe('returned')
    expect(await usdc()).toBe('USDC 1000 + 0')
    await repayMints({ ...services, clock: () => new Date(clock().getTime() + 60_000) }, quiet)
    const wallet = await findWallet(database(), owner.accountId)
    if (wallet === undefined) throw new Error('a guest has a wallet')
    expect(await services.chain.readBalance('USDC', wallet)).toBe(1_000_000_000n)
    await expectSoundBooks()
  })

  it('payouts of USDC that died before they were funded are given up, and never paid', async () => {
    const recipientId = await recipient()
    for (const statement of ['banking_insert_payout', 'wallets_insert_transfer']) {
      const broken = { ...services, database: failingAt(services.database, statement) }
      await expect(
        run(create, buildCall(broken, await authenticate(), { now: clock() }), {
          recipientId,
          amount: '100',
          asset: 'USDC',
        }),
      ).rejects.toThrow('the process died')
      expect(await usdc()).toBe('USDC 900 + 100')
      await later(3 * 60_000)
      await later()
      expect(await usdc()).toBe('USDC 1000 + 0')
    }
    expect((await call(list, {})).payouts).toMatchObject([{ status: 'failed', reason: 'not_funded' }])
    await expectSoundBooks()
  })

  /** A payout whose process died before it was funded, as if its money had come from another chain. */
  const arrived = async () => {
    const broken = { ...services, database: failingAt(services.database, 'wallets_insert_transfer') }
    const request = { recipientId: await recipient(), amount: '100', asset: 'USDC' }
    const dying = run(create, buildCall(broken, await authenticate(), { now: clock() }), request)
    await expect(dying).rejects.toThrow('the process died')
    return async () => {
      const [payout] = (
        await claimPayouts(services, { before: new Date(clock().getTime() + 1), at: clock(), limit: 50 })
      ).filter(({ accountId }) => accountId === owner.accountId)
      if (payout === undefined) throw new Error('it is open no more')
      const findMove = async () => ({ state: 'arrived' as const, updatedAt: clock() })
      await resumePayout({ ...services, oweMint: recordMint(services), findMove }, payout)
    }
  }

  it('payouts of USDC whose account is locked after their money arrived are given up', async () => {
    const resume = await arrived()
    line = 'down'
    await resume()
    line = 'up'
    const lock = (status: 'locked' | 'active') =>
      database().kysely.updateTable('account').set({ status }).where('id', '=', owner.accountId).execute()
    await lock('locked')
    await resume()
    await lock('active')
    expect((await call(list, {})).payouts).toMatchObject([{ status: 'failed', reason: 'not_funded' }])
    expect(await usdc()).toBe('USDC 1000 + 0')
    await expectSoundBooks()
  })

  it('payouts of USDC from another chain outlast a bank that does not answer when the process died before', async () => {
    const resume = await arrived()
    line = 'down'
    await resume()
    expect((await call(list, {})).payouts).toMatchObject([{ status: 'pending' }])
    expect(await usdc()).toBe('USDC 900 + 100')
    line = 'up'
    await resume()
    expect(await usdc()).toBe('USDC 900 + 0')
    await later()
    await later()
    expect((await call(list, {})).payouts).toMatchObject([{ status: 'paid' }])
    await expectSoundBooks()
  })

  it('payouts of USDC whose bank names another payout than before stop, and move no money', async () => {
    const resume = await arrived()
    answered = { providerId: 'bank_other' }
    await resume()
    expect(await usdc()).toBe('USDC 900 + 100')
    const [payout] = z.array(z.looseObject({ id: z.string() })).parse((await call(list, {})).payouts)
    expect(payout).toMatchObject({ status: 'pending' })
    expect(await reasons(payout?.id)).toEqual(['another_payout'])
  })

  it('payouts of USDC that the bank did not answer never reach the chain', async () => {
    line = 'lost answers'
    const { id } = await call(create, { recipientId: await recipient(), amount: '100', asset: 'USDC' })
    line = 'up'
    await later()
    expect(await readState(id)).toBe('pending')
    expect(await usdc()).toBe('USDC 900 + 100')
    await later(3 * 60_000)
    expect(await call(get, { id })).toMatchObject({ status: 'failed', reason: 'not_funded' })
    expect(await usdc()).toBe('USDC 1000 + 0')
  })

  it('payouts of USDC that are given up without an answer are canceled at the bank before another of their amount', async () => {
    const request = { recipientId: await recipient(), amount: '100', asset: 'USDC' }
    line = 'lost answers'
    const { id } = await call(create, request)
    await later(3 * 60_000)
    // The bank may take the next money of this amount for it.
    expect(await usdc()).toBe('USDC 1000 + 0')
    expect(await readState(id)).toBe('pending')
    line = 'up'
    await expect(call(create, request)).rejects.toMatchObject({
      code: 'payout_rejected',
      members: { reason: 'ambiguous_deposit' },
    })
    canceled.length = 0
    await later()
    expect(canceled).toEqual([`bank_${id}`])
    expect(await call(get, { id })).toMatchObject({ status: 'failed', reason: 'not_funded' })
    expect(await call(create, request)).toMatchObject({ status: 'pending' })
    expect(await usdc()).toBe('USDC 900 + 0')
    await expectSoundBooks()
  })

  it('payouts of USDC that the bank has not answered for most of a day are given up with an alarm', async () => {
    line = 'lost answers'
    const { id } = await call(create, { recipientId: await recipient(), amount: '100', asset: 'USDC' })
    await later(3 * 60_000)
    await later(21 * 60 * 60_000)
    expect(await readState(id)).toBe('failed')
    expect(await reasons(id)).toEqual(['no_answer'])
    expect(sent).toHaveLength(2)
  })

  it('go only to accounts with valid numbers, which are never told back', async () => {
    for (const [changes, path] of [
      [{ account: { routingNumber: '021000022', accountNumber: '123456789' } }, 'account.routingNumber'],
      [{ account: { routingNumber: '021000021', accountNumber: '12' } }, 'account.accountNumber'],
      [{ account: { iban: 'DE89370400440532013000' } }, 'account.iban'],
      [{ ...german, account: { iban: 'DE88370400440532013000' } }, 'account.iban'],
      [{ ...german, account: { iban: 'DE8937040044053201300' } }, 'account.iban'],
      [{ ...german, account: { iban: 'DE89370400440532013000', bic: 'COBA' } }, 'account.bic'],
      [{ currency: 'GBP', account: { sortCode: '12-34', accountNumber: '12345678' } }, 'account.sortCode'],
      [
        { currency: 'GBP', account: { sortCode: '12-34-56', accountNumber: '1234567' } },
        'account.accountNumber',
      ],
    ] as const) {
      const refusal = await call(addRecipient, { ...american, ...changes }).catch((error: unknown) => error)
      if (!(refusal instanceof Failure)) throw refusal
      expect(refusal.code).toBe('invalid_request')
      const { members } = refusal
      expect(members.issues?.map((issue) => issue.path)).toContain(path)
      expect(JSON.stringify(members)).not.toMatch(/\d{6}/)
    }
    const british = await call(addRecipient, {
      ...american,
      currency: 'GBP',
      account: { sortCode: '12-34-56', accountNumber: '12345678' },
    })
    expect(british).toMatchObject({ status: 'active', last4: '5678', name: 'Grace Hopper' })
    await expect(
      call(addRecipient, { ...american, account: { ...american.account, accountNumber: '123450001' } }),
    ).rejects.toMatchObject({ code: 'payout_rejected' })
    expect((await call(listRecipients, {})).recipients).toHaveLength(1)
  })

  async function authenticate() {
    const { token } = await signInAgain(services, owner.accountId, clock())
    const { principal } = await authenticateSession(services, { token, tokenHolder: 'client' }, clock())
    return principal
  }
})
