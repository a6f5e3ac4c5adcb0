/** Recourse on card purchases: given up before they clear, disputed after; what processors and merchants may report about it. */
import { expect, it } from 'vitest'
import { openAlarms } from '../../../src/books/alarms/alarms.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import type { CardProcessor } from '../../../src/providers/card-processor/port.ts'
import { applyDispute } from '../../../src/rails/cards/disputes.ts'
import { findPayment } from '../../../src/records/recourse/payments.ts'
import { continueDue, openRecourse, type RecourseParts } from '../../../src/records/recourse/run-recourse.ts'
import { findAnyRecourse, parseSteps } from '../../../src/records/recourse/store.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import {
  applyCardEvents,
  buildPurchase,
  cardDependencies,
  decide,
  issueCard,
  listOwned,
  newKey,
  newOwner,
} from '../../rails/cards/scene.ts'

const running = new AbortController().signal

onBothEngines('recourse on a card purchase', (database) => {
  const scene = async (changes: Partial<Pick<CardProcessor, 'expire' | 'dispute'>> = {}) => {
    let now = noon.getTime()
    const clock = () => new Date(now)
    const cards = { ...cardDependencies(database()), clock }
    const services = await servicesOn(database(), { clock })
    const owner = await newOwner(database(), { USD: '100' })
    const keyId = await newKey(database(), owner)
    const request = buildPurchase(await issueCard(database(), owner, { keyId, priority: ['USD'] }), '40')
    await decide(cards, request)
    const disputes: Parameters<NonNullable<CardProcessor['dispute']>>[0][] = []
    const token = `dispute-${request.token}`
    const dispute: NonNullable<CardProcessor['dispute']> = async (asked) => {
      disputes.push(asked)
      return { kind: 'dispute', token, transactionToken: asked.transactionToken, status: 'open', units: 0n }
    }
    const cardProcessor = { ...services.cardProcessor, expire: async () => true, dispute, ...changes }
    const parts: RecourseParts = {
      ...services,
      ...cards,
      settings: { ...services.settings, ...cards.settings },
      chains: services.chains,
      cardProcessor,
      signDocument: async () => '',
    }
    const { id } = await database()
      .kysely.selectFrom('card_authorization')
      .select('id')
      .where('processor_token', '=', request.token)
      .executeTakeFirstOrThrow()
    const pass = async (seconds: number) => {
      now += seconds * 1_000
      await continueDue(parts, running)
    }
    return {
      disputes,
      open: async () => {
        const payment = await findPayment(
          database(),
          { accountId: owner, keyId },
          { kind: 'card_transaction', id },
        )
        const opened = { accountId: owner, objectId: id, reason: 'not_delivered', note: null } as const
        return openRecourse(parts, payment, opened)
      },
      network: (
        status: Parameters<typeof applyCardEvents>[2],
        events: Parameters<typeof applyCardEvents>[3],
      ) => applyCardEvents(cards, request, status, events),
      report: (status: 'open' | 'won' | 'lost', units = 0n) =>
        applyDispute(cards, { kind: 'dispute', token, transactionToken: request.token, status, units }),
      pass,
      see: async (recourseId: string) => {
        await pass(400)
        const recourse = await findAnyRecourse(database(), recourseId)
        if (recourse === undefined) throw new Error('there is no such recourse')
        return recourse
      },
      owned: () => listOwned(database(), owner),
      used: async () =>
        (
          await database()
            .kysely.selectFrom('budget_usage')
            .select('used_micros')
            .where('key_id', '=', keyId)
            .executeTakeFirstOrThrow()
        ).used_micros,
      id,
    }
  }
  const stepsOf = (recourse: Parameters<typeof parseSteps>[0]) =>
    parseSteps(recourse).map(({ action, outcome }) => `${action} ${outcome}`)

  it('gives an authorization up before it clears', async () => {
    const { open, network, see, owned } = await scene()
    const { id, status } = await open()
    expect(status).toBe('open')
    expect(await owned()).toEqual(['USD 60 + 40'])
    await network('expired', [])
    expect(await see(id)).toMatchObject({ status: 'recovered', route: 'card_reversal', recovered: 4_000n })
    expect(await owned()).toEqual(['USD 100 + 0'])
  })

  it('disputes what cleared first, and books what is won, once', async () => {
    const { open, network, report, see, owned, used, disputes } = await scene()
    const { id } = await open()
    await network('settled', [['clearing', '40']])
    const disputed = await see(id)
    expect(stepsOf(disputed)).toEqual([
      'card_reversal waiting',
      'card_reversal raced',
      'card_dispute waiting',
    ])
    expect(disputes).toMatchObject([{ units: 4_000n, reason: 'not_delivered' }])
    // An open dispute has credited nothing.
    await report('open', 4_000n)
    expect(await owned()).toEqual(['USD 60 + 0'])
    const before = await used()
    for (let times = 0; times < 3; times += 1) expect(await report('won', 4_000n)).toBe('applied')
    expect(await see(id)).toMatchObject({ status: 'recovered', recovered: 4_000n })
    expect(await owned()).toEqual(['USD 100 + 0'])
    expect(await used()).toBeLessThan(before)
    expect(disputes).toHaveLength(1)
  })

  it('takes back what was won and then lost, and the recourse stays as it ended', async () => {
    const { open, network, report, see, owned, id: purchaseId } = await scene()
    await network('settled', [['clearing', '40']])
    const { id } = await open()
    await report('won', 4_000n)
    expect(await see(id)).toMatchObject({ status: 'recovered' })
    for (let times = 0; times < 2; times += 1) await report('lost')
    expect(await owned()).toEqual(['USD 60 + 0'])
    await report('won', 4_000n)
    expect(await owned()).toEqual(['USD 60 + 0'])
    expect(await see(id)).toMatchObject({ status: 'recovered', recovered: 4_000n })
    const alarms = await openAlarms(database())
    expect(alarms.filter(({ objectId }) => objectId === purchaseId)).toMatchObject([
      { reason: 'dispute_taken_back' },
    ])
  })

  it('never returns more than was cleared: a merchant that refunds what is disputed', async () => {
    const { open, network, report, see, owned } = await scene()
    await network('settled', [['clearing', '40']])
    const { id } = await open()
    const events = [
      ['clearing', '40'],
      ['refund', '30'],
    ] as const
    await Promise.all([network('settled', events), report('won', 4_000n)])
    const { recovered, status } = await see(id)
    expect(status).toBe('recovered')
    expect(recovered).toBe(4_000n)
    const [owned_] = await owned()
    // Whichever came first: a refund of the merchant beside a whole credit is the merchant's gift.
    expect(['USD 100 + 0', 'USD 130 + 0']).toContain(owned_)
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('is refused where the dispute is lost, and impossible where none is taken', async () => {
    const lost = await scene()
    await lost.network('settled', [['clearing', '40']])
    const { id } = await lost.open()
    await lost.report('lost')
    expect(await lost.see(id)).toMatchObject({ status: 'refused', recovered: 0n })
    const none = await scene({ dispute: null })
    await none.network('settled', [['clearing', '40']])
    expect(await none.open()).toMatchObject({ status: 'impossible' })
    const refused = await scene({ dispute: async () => null })
    await refused.network('settled', [['clearing', '40']])
    expect(await refused.open()).toMatchObject({ status: 'refused' })
  })

  it('has nothing to get back where nothing was taken, or all has come back', async () => {
    const { open, network } = await scene()
    await network('voided', [['reversal', '40']])
    await expect(open()).rejects.toMatchObject({
      code: 'recourse_impossible',
      members: { reason: 'nothing_paid' },
    })
    const back = await scene()
    await back.network('settled', [
      ['clearing', '40'],
      ['refund', '40'],
    ])
    await expect(back.open()).rejects.toMatchObject({ members: { reason: 'already_back' } })
  })
})
