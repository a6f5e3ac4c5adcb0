import { expect, it } from 'vitest'
import type { AccountPrincipal } from '../../../src/core/base/principal.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import type { CardProcessor } from '../../../src/providers/card-processor/port.ts'
import { finishOrders } from '../../../src/server/jobs/finish-orders.ts'
import { repayMints } from '../../../src/server/jobs/repay-mints.ts'
import type { Database } from '../../../src/storage/database.ts'
import guestTool from '../../../tools/auth/guest.ts'
import openTool from '../../../tools/banking/create.ts'
import issueTool from '../../../tools/cards/issue.ts'
import listTool from '../../../tools/cards/list.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, newPerson, noon, servicesOn } from '../../kernel/scene.ts'

const minutesLater = (minutes: number) => () => new Date(noon.getTime() + minutes * 60_000)
const never = new AbortController().signal
const lost = new Failure('provider_unavailable', 'The answer was lost.')

/**
 * A processor that accepts an id once, and loses answers as configured. It reads the committed state when it is called.
 */
function processorOn(database: Database, { losing = 0, refusing = false } = {}) {
  const issued = new Map<string, string>()
  const seen: number[] = []
  let lose = losing
  const issue: CardProcessor['issue'] = async ({ cardId }) => {
    const orders = await database.kysely
      .selectFrom('card_order')
      .select('id')
      .where('id', '=', cardId)
      .execute()
    seen.push(orders.length)
    if (refusing) throw new Failure('provider_unavailable', 'Refused.', { isFinal: true })
    issued.set(cardId, issued.get(cardId) ?? `token-${issued.size}-${cardId}`)
    lose -= 1
    if (lose >= 0) throw lost
    return { token: issued.get(cardId) ?? '', brand: 'Visa', last4: '4242', expMonth: 1, expYear: 2030 }
  }
  return { issued, seen, issue }
}

onBothEngines('an order to a provider', (database) => {
  const scene = async (options?: { losing?: number; refusing?: boolean }) => {
    const services = await servicesOn(database())
    const processor = processorOn(database(), options)
    return {
      processor,
      person: await newPerson(database()),
      services: { ...services, cardProcessor: { ...services.cardProcessor, issue: processor.issue } },
    }
  }
  const issue = (services: Services, person: AccountPrincipal, key: string | null, nickname = 'One') =>
    run(issueTool, buildCall(services, person, { idempotencyKey: key }), {
      nickname,
      limits: { daily: '12.50' },
    })
  const listCards = async (services: Services, person: AccountPrincipal) =>
    (await run(listTool, buildCall(services, person), {})).body.cards

  const issuedEntries = (person: AccountPrincipal) =>
    database()
      .kysely.selectFrom('journal_entry')
      .select(['actor_kind', 'actor_id', 'object_id'])
      .where('account_id', '=', person.account.id)
      .where('action', '=', 'card.issued')
      .execute()

  it('is written and committed before the provider is called', async () => {
    const { services, person, processor } = await scene()
    expect((await issue(services, person, null)).body).toMatchObject({ nickname: 'One', last4: '4242' })
    expect(processor.seen).toEqual([1])
  })

  it('is one card when the answer is lost and the call repeated with its key', async () => {
    const { services, person, processor } = await scene({ losing: 1 })
    await expect(issue(services, person, 'k')).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await listCards(services, person)).toEqual([])
    await expect(issue(services, person, 'k', 'Two')).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    })
    const { body } = await issue(services, person, 'k')
    expect(await listCards(services, person)).toMatchObject([{ id: body.id, limits: { daily: '12.5' } }])
    expect(await issue(services, person, 'k')).toMatchObject({ replayed: true, body: { id: body.id } })
    expect(processor.issued.size).toBe(1)
  })

  it('is resumed by a job, and repeats return its result', async () => {
    const { services, person, processor } = await scene({ losing: 1 })
    await expect(issue(services, person, 'k')).rejects.toMatchObject({ code: 'provider_unavailable' })
    await finishOrders(services, never)
    expect(await listCards(services, person)).toEqual([])
    await Promise.all([1, 2].map(() => finishOrders({ ...services, clock: minutesLater(1) }, never)))
    const { body } = await issue(services, person, 'k')
    expect(await listCards(services, person)).toMatchObject([{ id: body.id }])
    expect(processor.issued.size).toBe(1)
    // The journal names the person who ordered it, once, although two rounds of the job executed it.
    expect(await issuedEntries(person)).toEqual([
      { actor_kind: 'person', actor_id: person.account.id, object_id: body.id },
    ])
    expect((await issue(services, person, 'another')).body.id).not.toBe(body.id)
  })

  it('is deleted when the provider refuses, and abandoned before the provider’s idempotency expires', async () => {
    const refused = await scene({ refusing: true })
    await expect(issue(refused.services, refused.person, 'k')).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
    await finishOrders({ ...refused.services, clock: minutesLater(2) }, never)
    expect(refused.processor.seen).toEqual([1])
    const silent = await scene({ losing: 100 })
    await expect(issue(silent.services, silent.person, 'k')).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
    await finishOrders({ ...silent.services, clock: minutesLater(2) }, never)
    expect(silent.processor.seen.length).toBe(2)
    for (const hours of [21, 22])
      await finishOrders({ ...silent.services, clock: minutesLater(60 * hours) }, never)
    expect(silent.processor.seen.length).toBe(2)
  })

  it('is one virtual account for all callers', async () => {
    const { services, person } = await scene()
    await run(guestTool, buildCall(services, { kind: 'public' }), {})
    await database()
      .kysely.insertInto('wallet')
      .values({
        account_id: person.account.id,
        address: '0x5555555555555555555555555555555555555555',
        chain: 'base-sepolia',
        created_at: noon,
        origin: JSON.stringify({ kind: 'gateway' }),
        owner: JSON.stringify({ kind: 'gateway' }),
      })
      .execute()
    const requestedIds: string[] = []
    let losing = 1
    const bankingProvider: Services['bankingProvider'] = {
      ...services.bankingProvider,
      open: async (order) => {
        const there = await database()
          .kysely.selectFrom('virtual_account_order')
          .select('id')
          .where('id', '=', order.id)
          .execute()
        requestedIds.push(`${order.id} ${there.length}`)
        losing -= 1
        if (losing >= 0) throw lost
        return services.bankingProvider.open(order)
      },
    }
    const live = { ...services, bankingProvider }
    const open = (key: string | null) =>
      run(openTool, buildCall(live, person, { idempotencyKey: key }), { currency: 'EUR' })
    await expect(open('k')).rejects.toMatchObject({ code: 'provider_unavailable' })
    await finishOrders({ ...live, clock: minutesLater(1) }, never)
    const ids = (await Promise.all([open('k'), open(null), open('other')])).map(({ body }) => body.id)
    expect(new Set(ids).size).toBe(1)
    expect(new Set(requestedIds)).toEqual(new Set([`${String(ids[0])} 1`]))
  })
})

onBothEngines('a wallet’s missing tokens on the chain', (database) => {
  it('are minted once after a failed mint, and not again when only its answer was lost', async () => {
    const services = await servicesOn(database())
    const chain = { ...services.chain }
    let works = false
    const failing = {
      ...chain,
      mint: async (mints: Parameters<typeof chain.mint>[0]) => {
        if (!works) throw new Error('the node is gone')
        await chain.mint(mints)
      },
    }
    const guest = async (changes: Partial<Services>) => {
      const { body } = await run(guestTool, buildCall({ ...services, ...changes }, { kind: 'public' }), {})
      const { id } = JSON.parse(JSON.stringify(body.account))
      const { address } = await database()
        .kysely.selectFrom('wallet')
        .select('address')
        .where('account_id', '=', id)
        .executeTakeFirstOrThrow()
      return () => chain.readBalance('USDC', `0x${address.slice(2)}`)
    }
    const poor = await guest({ chain: failing })
    const rich = await guest({
      chain: {
        ...chain,
        mint: async (mints) => {
          await chain.mint(mints)
          throw new Error('the answer was lost')
        },
      },
    })
    expect([await poor(), await rich()]).toEqual([0n, 1_000_000_000n])
    const later = { ...services, chain: failing, clock: minutesLater(1) }
    await repayMints(later, never)
    expect(await poor()).toBe(0n)
    works = true
    await Promise.all([1, 2].map(() => repayMints({ ...later, clock: minutesLater(2) }, never)))
    await repayMints({ ...later, clock: minutesLater(3) }, never)
    expect([await poor(), await rich()]).toEqual([1_000_000_000n, 1_000_000_000n])
    expect(await database().kysely.selectFrom('owed_mint').select('id').execute()).toEqual([])
  })
})
