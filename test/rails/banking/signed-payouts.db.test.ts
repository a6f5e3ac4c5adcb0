/** Payouts that the owner of a wallet signs, at a bank as strict as its documentation. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { openAlarms } from '../../../src/books/alarms/alarms.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Principal } from '../../../src/core/base/principal.ts'
import type { Context, Services } from '../../../src/kernel/context.ts'
import { createBridgeBanking } from '../../../src/providers/banking/bridge.ts'
import { applyBankingEvent } from '../../../src/rails/banking/apply-event.ts'
import { recordMint } from '../../../src/rails/wallets/reconcile/owed-mints.ts'
import { settlePayouts } from '../../../src/server/jobs/settle-payouts.ts'
import create from '../../../tools/banking/payouts/create.ts'
import get from '../../../tools/banking/payouts/get.ts'
import intentTool from '../../../tools/banking/payouts/intent.ts'
import list from '../../../tools/banking/payouts/list.ts'
import addRecipient from '../../../tools/banking/recipients/create.ts'
import removeRecipient from '../../../tools/banking/recipients/remove.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import { startBridgeServer } from '../../contracts/bridge-server.ts'
import { onBothEngines } from '../../engines.ts'
import { servicesOn } from '../../kernel/scene.ts'
import { intentAnswer, type Sign, walletScene } from '../../tools/wallets/scene.ts'
import { movedClock } from '../investing/scene.ts'
import { american } from './american.ts'
import { failingAt } from './failing-at.ts'

const quiet = new AbortController().signal
const rejected = { code: 'signature_rejected' }
const payoutIntent = intentAnswer.extend({ intent: z.record(z.string(), z.unknown()) })

onBothEngines('payouts that their owner signs', (database) => {
  const clock = movedClock()
  let bank: Awaited<ReturnType<typeof startBridgeServer>>
  let services: Services
  let scene: ReturnType<typeof walletScene>
  let owner: Principal
  let accountId = ''
  let sign: Sign
  let recipientId = ''
  let count = 0

  beforeAll(async () => {
    bank = await startBridgeServer()
    const parts = { url: bank.url, apiKey: 'secret', webhookKeys: [], log: silentLog }
    services = await servicesOn(database(), { clock, bankingProvider: createBridgeBanking(parts) })
    scene = walletScene(services)
  })
  afterAll(() => bank.close())
  beforeEach(async () => {
    clock.forward(3_600_000)
    bank.state.interrupt = () => false
    bank.state.depositTo = null
    ;({ owner, accountId, sign } = await newOwner())
    recipientId = await save()
  })

  /** A person whose passkey owns the wallet, and who is a customer of the bank. */
  const newOwner = async () => {
    const made = await scene.newPasskeyOwner()
    if (made.owner.kind !== 'session') throw new Error('no person')
    const { id } = made.owner.account
    count += 1
    const customer = `cust_${count}`
    bank.addCustomer(customer)
    await database()
      .kysely.insertInto('bank_customer')
      .values({
        ...{ account_id: id, link_id: `link_${count}`, customer_id: customer, status: 'approved' },
        ...{ created_at: clock(), checked_at: clock() },
      })
      .execute()
    return { owner: made.owner, accountId: id, sign: made.sign }
  }
  const call = async (
    tool: Parameters<typeof scene.call>[0],
    input: unknown,
    changes: Partial<Context> = {},
    as = owner,
  ) => {
    const principal = as.kind === 'session' ? { ...as, session: { ...as.session, steppedUpAt: clock() } } : as
    return scene.call(tool, principal, input, { now: clock(), ...changes })
  }
  const save = async (changes: object = {}) =>
    String((await call(addRecipient, { ...american, ...changes })).id)
  const buildRequest = (changes: object = {}) => ({ recipientId, amount: '100', asset: 'USDC', ...changes })
  const intentFor = async (changes: object = {}) =>
    payoutIntent.parse(await call(intentTool, buildRequest(changes)))
  const pay = async (
    intent: z.output<typeof payoutIntent>,
    changes: object = {},
    more: Partial<Context> = {},
  ) =>
    call(
      create,
      { ...buildRequest(changes), intentId: intent.intentId, signature: await sign(intent) },
      { idempotencyKey: randomUUID(), ...more },
    )
  const books = () => scene.readBooks(accountId)
  const untouched = { available: 1_000_000_000n, held: 0n }
  const atBank = (intent: z.output<typeof payoutIntent>) => {
    const found = [...bank.transfers.values()].find(
      ({ client_reference_id: id }) => id === intent.intent.payoutId,
    )
    if (found === undefined) throw new Error('the bank does not know the payout')
    return found
  }
  const later = async (minutes: number) => {
    clock.forward(minutes * 60_000)
    await settlePayouts(services, quiet)
  }
  const report = async (id: string, reference: string, state: string) =>
    applyBankingEvent(
      { ...services, isBookedHere: false, oweMint: recordMint(services) },
      {
        ...{ eventId: randomUUID(), type: 'updated', kind: 'payout', objectId: id, reference, state },
        ...{ virtualAccount: null, amount: null, currency: 'usd', customer: null, sender: null, memo: null },
      },
      clock(),
    )

  it('name all that is paid in the text that is signed, and are sent once', async () => {
    const intent = await intentFor({ reference: 'Invoice 42' })
    const kept = atBank(intent)
    expect(intent.intent).toMatchObject({
      ...{ kind: 'payout', payoutId: kept.client_reference_id, recipientId, amount: '100', token: 'USDC' },
      ...{ currency: 'USD', recipientAmount: '100' },
      destination: expect.stringMatching(new RegExp(kept.source_deposit_instructions.to_address, 'i')),
    })
    // The bank waits, and nothing is reserved or listed.
    expect([kept.state, await books()]).toEqual(['awaiting_funds', untouched])
    expect((await call(list, {})).payouts).toEqual([])
    const changes = { reference: 'Invoice 42' }
    const idempotencyKey = 'rent'
    const signed = { ...buildRequest(changes), intentId: intent.intentId, signature: await sign(intent) }
    const sent = await call(create, signed, { idempotencyKey })
    expect(sent).toMatchObject({ id: kept.client_reference_id, status: 'pending', recipientAmount: '100' })
    const { to_address: to } = kept.source_deposit_instructions
    expect(await services.chain.readBalance('USDC', to)).toBe(100_000_000n)
    expect(await books()).toEqual({ available: 900_000_000n, held: 0n })
    // Again under its key: the same payout. Under another: the intent was used.
    expect(await call(create, signed, { idempotencyKey })).toMatchObject({ id: sent.id })
    await expect(pay(intent, changes)).rejects.toMatchObject(rejected)
    expect(
      bank.asked.filter(({ method, path }) => method === 'POST' && path === '/v0/transfers'),
    ).toHaveLength(bank.transfers.size)
    for (const [state, status] of [
      ['payment_submitted', 'sent'],
      ['payment_processed', 'paid'],
    ] as const) {
      await report(kept.id, kept.client_reference_id, state)
      expect(await call(get, { id: sent.id })).toMatchObject({ status })
    }
    await later(20)
    expect(kept.state).toBe('awaiting_funds')
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })

  it('move money once when they are submitted many times at once', async () => {
    const intent = await intentFor()
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => pay(intent)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes)
      if (outcome.status === 'rejected')
        // One that comes when the first has paid finds that the bank no longer waits for the money.
        expect(['signature_rejected', 'conflict', 'payout_rejected']).toContain(outcome.reason.code)
    expect(await books()).toEqual({ available: 900_000_000n, held: 0n })
    const { to_address: to } = atBank(intent).source_deposit_instructions
    expect(await services.chain.readBalance('USDC', to)).toBe(100_000_000n)
  })

  it('are the very payout that was signed: no other recipient, amount, reference, person or purpose', async () => {
    const other = await save({ name: 'Emmy Noether' })
    const intent = await intentFor({ reference: 'Rent' })
    const same = { reference: 'Rent' }
    for (const changes of [
      { ...same, recipientId: other },
      { ...same, amount: '101' },
      {},
      { reference: 'Rant' },
    ])
      await expect(pay(intent, changes)).rejects.toMatchObject(rejected)
    const destination = String(intent.intent.destination)
    const plain = { destination, amount: '100', signature: await sign(intent) }
    for (const intentId of [intent.intentId, undefined])
      await expect(call(transfer, { ...plain, intentId })).rejects.toMatchObject(rejected)
    const ordinary = await scene.requestIntent(owner, { destination, amount: '100' }, { now: clock() })
    const byOrdinary = { ...buildRequest(same), intentId: ordinary.intentId, signature: await sign(ordinary) }
    await expect(call(create, byOrdinary)).rejects.toMatchObject(rejected)
    const stranger = await newOwner()
    const theirs = {
      ...buildRequest(same),
      intentId: intent.intentId,
      signature: await stranger.sign(intent),
    }
    await expect(call(create, theirs)).rejects.toMatchObject(rejected)
    await expect(call(create, theirs, {}, stranger.owner)).rejects.toMatchObject({ code: 'not_found' })
    await expect(call(create, buildRequest(same))).rejects.toMatchObject(rejected)
    await expect(
      call(create, { ...buildRequest({ asset: 'USD' }), intentId: intent.intentId }),
    ).rejects.toMatchObject({ code: 'invalid_request' })
    expect(await books()).toEqual(untouched)
    expect(await pay(intent, same)).toMatchObject({ status: 'pending' })
  })

  it('payouts that are never signed end at the bank, and can be asked for again', async () => {
    const intent = await intentFor()
    clock.forward(6 * 60_000)
    await expect(pay(intent)).rejects.toMatchObject(rejected)
    // The same terms are the same payout; a newer intent replaces the older one.
    const again = await intentFor()
    expect(again.intent.payoutId).toBe(intent.intent.payoutId)
    const newest = await intentFor()
    await expect(pay(again)).rejects.toMatchObject(rejected)
    await later(10)
    expect(atBank(newest).state).toBe('awaiting_funds')
    await later(2)
    expect(atBank(newest).state).toBe('canceled')
    await expect(pay(newest)).rejects.toMatchObject(rejected)
    expect(await books()).toEqual(untouched)
    const fresh = await intentFor()
    expect(fresh.intent.payoutId).not.toBe(intent.intent.payoutId)
    expect(await pay(fresh)).toMatchObject({ status: 'pending' })
    await later(20)
    expect(atBank(fresh).state).toBe('awaiting_funds')
  })

  it('payouts that the bank has ended, or waits for elsewhere, are not sent', async () => {
    let amount = 10
    for (const change of [
      (kept: ReturnType<typeof atBank>) => {
        kept.state = 'canceled'
      },
      (kept: ReturnType<typeof atBank>) => {
        kept.state = 'funds_received'
      },
      (kept: ReturnType<typeof atBank>) => {
        kept.source_deposit_instructions.to_address = `0x${'d'.repeat(40)}`
      },
    ]) {
      amount += 1
      const changes = { amount: String(amount) }
      const intent = await intentFor(changes)
      change(atBank(intent))
      await expect(pay(intent, changes)).rejects.toMatchObject({
        code: 'payout_rejected',
        members: { reason: 'intent_ended' },
      })
    }
    // The bank's webhook says so before.
    const intent = await intentFor({ amount: '7' })
    await report(atBank(intent).id, atBank(intent).client_reference_id, 'canceled')
    await expect(pay(intent, { amount: '7' })).rejects.toMatchObject({ code: 'payout_rejected' })
    expect(await books()).toEqual(untouched)
  })

  it('payouts that the bank refuses or does not answer hold nothing, and are asked for once', async () => {
    bank.state.interrupt = ({ path }, response) => {
      if (path === '/v0/transfers') response.destroy()
      return path === '/v0/transfers'
    }
    const before = bank.transfers.size
    await expect(intentFor()).rejects.toMatchObject({ code: 'provider_unavailable' })
    // An unanswered payout of the amount could take the money of another one.
    bank.state.interrupt = () => false
    const other = await save({ name: 'Emmy Noether' })
    await expect(intentFor({ recipientId: other })).rejects.toMatchObject({ code: 'conflict' })
    const intent = await intentFor()
    expect(bank.transfers.size - before).toBe(2)
    expect(await pay(intent)).toMatchObject({ status: 'pending' })
    bank.state.interrupt = (_asked, response) => {
      response.writeHead(400).end('{}')
      return true
    }
    await expect(intentFor({ amount: '5' })).rejects.toMatchObject({
      code: 'payout_rejected',
      members: { reason: 'provider_refused' },
    })
    expect(await books()).toEqual({ available: 900_000_000n, held: 0n })
  })

  it('payouts whose answer was lost are learned and canceled by the job, or told to an administrator', async () => {
    bank.state.interrupt = ({ path }, response) => {
      if (path === '/v0/transfers') response.destroy()
      return path === '/v0/transfers'
    }
    await expect(intentFor()).rejects.toMatchObject({ code: 'provider_unavailable' })
    const kept = [...bank.transfers.values()].at(-1)
    await later(12)
    expect(kept?.state).toBe('awaiting_funds')
    bank.state.interrupt = () => false
    await later(12)
    expect(kept?.state).toBe('canceled')
    bank.state.interrupt = ({ path }, response) => {
      if (path === '/v0/transfers') response.destroy()
      return path === '/v0/transfers'
    }
    await expect(intentFor({ amount: '9' })).rejects.toMatchObject({ code: 'provider_unavailable' })
    await later(21 * 60)
    const id = [...bank.transfers.values()].at(-1)?.client_reference_id
    expect((await openAlarms(database())).filter(({ objectId }) => objectId === id)).toMatchObject([
      { reason: 'no_answer' },
    ])
  })

  it('are not paid after a crash between signature and chain, and their money is available again', async () => {
    for (const statement of ['banking_insert_payout', 'wallets_insert_transfer']) {
      const intent = await intentFor()
      const broken = { database: failingAt(services.database, statement) }
      await expect(pay(intent, {}, broken)).rejects.toThrow('the process died')
      expect(await books()).toEqual({ available: 900_000_000n, held: 100_000_000n })
      await later(3)
      await later(12)
      await later(1)
      expect(await books()).toEqual(untouched)
      expect(atBank(intent).state).toBe('canceled')
      await expect(pay(intent)).rejects.toMatchObject(rejected)
      expect(
        await services.chain.readBalance('USDC', atBank(intent).source_deposit_instructions.to_address),
      ).toBe(0n)
    }
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })

  it('payouts of one amount never wait twice at one address, where the bank could take the money for the wrong one', async () => {
    bank.state.depositTo = `0x${'e'.repeat(40)}`
    const other = await save({ name: 'Emmy Noether' })
    const intent = await intentFor()
    await expect(intentFor({ recipientId: other })).rejects.toMatchObject({ code: 'conflict' })
    expect(
      await pay(await intentFor({ recipientId: other, amount: '99' }), { recipientId: other, amount: '99' }),
    ).toMatchObject({
      status: 'pending',
    })
    expect(await pay(intent)).toMatchObject({ status: 'pending' })
    const next = await intentFor({ recipientId: other })
    expect(await pay(next, { recipientId: other })).toMatchObject({ status: 'pending' })
    expect(await books()).toEqual({ available: 701_000_000n, held: 0n })
  })

  it('need a recipient that is still there, and enough money before the bank is asked', async () => {
    const intent = await intentFor()
    await call(removeRecipient, { id: recipientId })
    await expect(pay(intent)).rejects.toMatchObject({ code: 'not_found' })
    recipientId = await save()
    const before = bank.asked.length
    await expect(intentFor({ amount: '1000.01' })).rejects.toMatchObject({ code: 'insufficient_funds' })
    await expect(intentFor({ recipientId: 'rcp_01kaj8e8z8f9t9w8m4q6x7v5r2' })).rejects.toMatchObject({
      code: 'not_found',
    })
    expect(bank.asked.length).toBe(before)
    expect(await books()).toEqual(untouched)
  })
})
