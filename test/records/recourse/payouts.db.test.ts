/** Recourse on payouts: recalled before they are sent, returned after, and told where the provider takes no such request. */
import { beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../src/core/base/ids.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { applyBankingEvent } from '../../../src/rails/banking/apply-event.ts'
import { recordMint } from '../../../src/rails/wallets/reconcile/owed-mints.ts'
import { continueDue, type RecourseParts } from '../../../src/records/recourse/run-recourse.ts'
import { findAnyRecourse, parseSteps } from '../../../src/records/recourse/store.ts'
import guest from '../../../tools/auth/guest.ts'
import create from '../../../tools/banking/payouts/create.ts'
import addRecipient from '../../../tools/banking/recipients/create.ts'
import openRecourse from '../../../tools/recourse/open.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, servicesOn } from '../../kernel/scene.ts'
import { type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'
import { american } from '../../rails/banking/american.ts'
import { listOwned } from '../../rails/cards/scene.ts'
import { movedClock } from '../../rails/investing/scene.ts'

const quiet = new AbortController().signal

onBothEngines('recourse on a payout', (database) => {
  const clock = movedClock()
  let owner: SignedIn
  let services: Services

  const begin = async (changes: Partial<Services['bankingProvider']> = {}) => {
    const made = await servicesOn(database(), { clock })
    services = { ...made, bankingProvider: { ...made.bankingProvider, ...changes } }
    const { body } = await run(guest, buildCall(services, { kind: 'public' }, { now: clock() }), {})
    const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
    owner = await signInAgain(services, account.id, clock())
    const account_ = { ...american.account, accountNumber: '123450000' }
    const recipientId = (await owner.call(addRecipient, { ...american, account: account_ }, { at: clock() }))
      .body.id
    const payout = await owner.call(create, { recipientId, amount: '100' }, { at: clock() })
    return String(payout.body.id)
  }
  beforeEach(() => clock.forward(3_600_000))

  const report = (id: string, state: string) =>
    applyBankingEvent(
      { ...services, isBookedHere: true, oweMint: recordMint(services) },
      {
        ...{ eventId: newId('evt', clock()), type: 'updated', kind: 'payout', state },
        ...{ objectId: `wait_${id}`, reference: id, virtualAccount: null, amount: '100', currency: 'usd' },
        ...{ customer: null, sender: null, memo: null },
      },
      clock(),
    )
  const open = async (id: string) => {
    const object = { kind: 'payout', id }
    return (await owner.call(openRecourse, { object, reason: 'wrong_amount' }, { at: clock() })).body
  }
  const see = async (id: unknown) => {
    clock.forward(60_000)
    const parts: RecourseParts = { ...services, signDocument: async () => '' }
    await continueDue(parts, quiet)
    const recourse = await findAnyRecourse(database(), String(id))
    if (recourse === undefined) throw new Error('there is no such recourse')
    return recourse
  }
  const cash = async () =>
    (await listOwned(database(), owner.accountId)).find((row) => row.startsWith('USD '))
  const stepsOf = (recourse: Parameters<typeof parseSteps>[0]) =>
    parseSteps(recourse).map(({ action, outcome }) => `${action} ${outcome}`)

  it('is recalled while it waits for its money', async () => {
    let canceled = 0
    const id = await begin({
      cancelPayout: async () => {
        canceled += 1
      },
    })
    const { recourseId, status } = await open(id)
    expect(status).toBe('open')
    expect((await see(recourseId)).status).toBe('open')
    expect(canceled).toBe(1)
    const before = await cash()
    await report(id, 'canceled')
    const ended = await see(recourseId)
    expect(ended).toMatchObject({ status: 'recovered', route: 'bank_recall', recovered: ended.claimed })
    expect(await cash()).not.toBe(before)
  })

  it('asks for its return where it was sent first, and counts what is posted', async () => {
    const id = await begin()
    const { recourseId } = await open(id)
    await report(id, 'payment_processed')
    expect(stepsOf(await see(recourseId))).toEqual([
      'bank_recall waiting',
      'bank_recall raced',
      'bank_recall waiting',
    ])
    const before = await cash()
    await report(id, 'returned')
    expect(await see(recourseId)).toMatchObject({ status: 'recovered' })
    expect(await cash()).not.toBe(before)
  })

  it('is impossible after it was sent, where the provider takes no requests to return it', async () => {
    const id = await begin({ requestReturn: null })
    await report(id, 'payment_processed')
    expect(await open(id)).toMatchObject({
      status: 'impossible',
      recovered: '0',
      hint: expect.stringMatching(/takes no requests to return it/),
    })
  })

  it('expires where the bank says nothing', async () => {
    const id = await begin()
    await report(id, 'payment_submitted')
    const { recourseId } = await open(id)
    clock.forward(31 * 86_400_000)
    expect(await see(recourseId)).toMatchObject({ status: 'expired', recovered: 0n })
  })
})
