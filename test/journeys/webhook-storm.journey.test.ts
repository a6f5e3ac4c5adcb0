/**
 * Two gateways on one database get a thousand webhooks, each three times and in random order, and one gateway dies
 * meanwhile: the books equal those of one gateway that gets each webhook once, in order.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import { signBankingWebhook } from '../../src/providers/banking/signature.ts'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { listOwned } from '../rails/cards/scene.ts'
import { expectEventsOfEffects } from '../records/events/effects.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

const PEOPLE = 8
const PURCHASES = 32
const DEPOSITS = 20
const SENDERS = 12

/** One webhook. @property id equal for every delivery of it. */
interface Hook {
  readonly id: string
  readonly provider: 'lithic' | 'bridge'
  readonly body: string
}

const credentials = z.object({
  lithicWebhookSecret: z.string(),
  bridgeWebhookPrivateKey: z.string(),
  chain: z.object({ rpcUrl: z.string() }),
})

describe.skipIf(testServerUrl === undefined)('a storm of webhooks', () => {
  let database: Database
  let drop = async () => {}
  let env: Record<string, string> = {}
  let secret = ''
  let key: KeyObject
  const gateways: Gateway[] = []

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    env = { DATABASE_URL: created.url, RATE_MUTATIONS: '100000/60', LOG_LEVEL: 'error' }
    const first = await startGateway(env)
    gateways.push(first)
    const told = credentials.parse(await (await fetch(`${first.origin}/sandbox/credentials`)).json())
    secret = told.lithicWebhookSecret
    key = createPrivateKey(told.bridgeWebhookPrivateKey)
    env.CHAIN_RPC_URL = told.chain.rpcUrl
    gateways.push(await startGateway(env))
    database = await openPostgres({ url: created.url })
  }, 60_000)
  afterAll(async () => {
    for (const gateway of gateways.reverse()) await gateway.stop()
    await database?.close()
    await drop()
  }, 60_000)

  /** Sends a webhook until it is accepted, as providers do. */
  const send = async (hook: Hook, origin: () => string): Promise<void> => {
    for (let tries = 0; tries < 200; tries += 1) {
      const at = new Date()
      const signed =
        hook.provider === 'lithic'
          ? signWebhook({ id: hook.id, body: hook.body, at }, secret)
          : { 'x-webhook-signature': signBankingWebhook(hook.body, { key, at }) }
      const taken = await fetch(`${origin()}/api/webhooks/${hook.provider}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...signed },
        body: hook.body,
      }).then(
        (response) => response.status === 200,
        () => false,
      )
      if (taken) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    throw new Error(`${hook.id} was never accepted`)
  }

  /** Persons with their webhooks, in order. */
  const newCast = async (run: string): Promise<{ people: Person[]; hooks: Hook[][] }> => {
    const people = await Promise.all(
      Array.from({ length: PEOPLE }, () => newGuest(gateways[0]?.origin ?? '')),
    )
    const hooks = await Promise.all(people.map((person, index) => buildHooks(person, `${run}-${index}`)))
    return { people, hooks }
  }

  /** Balances of each person without dividends, which depend on the price at which the guest got its shares. */
  const readBooks = (people: readonly Person[]) =>
    Promise.all(
      people.map(async ({ accountId }) => {
        const { rows } = await sql<{ line: string }>`
          select substr(b.account, ${accountId.length + 2}) || ' ' || b.asset || ' ' || (b.units - (
              select coalesce(sum(p.units), 0) from posting p join ledger_transaction t on t.id = p.transaction_id
              where t.kind = 'dividend' and p.destination = b.account and p.asset = b.asset
            )) as line
          from balance b
          where b.account > ${`${accountId}:`} and b.account < ${`${accountId};`} and b.units <> 0
            and b.asset not like 'equity:%'
          order by line`.execute(database.kysely)
        return rows.map(({ line }) => line)
      }),
    )

  const isQuiet = async (people: readonly Person[]) => {
    const early = await database.kysely.selectFrom('card_early').select('webhook_id').execute()
    const books = await Promise.all(people.map(({ accountId }) => listOwned(database, accountId)))
    return early.length === 0 && books.flat().every((line) => line.endsWith('+ 0'))
  }

  it('results in the books of an ordered run', async () => {
    const ordered = await newCast('ordered')
    const origin = () => gateways[0]?.origin ?? ''
    await inParallel(PEOPLE, ordered.hooks, async (hooks) => {
      for (const hook of hooks) await send(hook, origin)
    })

    const stormy = await newCast('stormy')
    const told = stormy.hooks.flat()
    expect(told.length).toBeGreaterThanOrEqual(1_000)
    const deck = shuffle([...told, ...told, ...told])
    let sent = 0
    let restarted: Promise<void> | undefined
    await inParallel(SENDERS, deck, async (hook, index) => {
      sent += 1
      if (sent === Math.floor(deck.length / 2)) restarted = killAndRestart()
      await send(hook, () => gateways[index % 2]?.origin ?? '')
    })
    await restarted

    await expect
      .poll(() => isQuiet([...ordered.people, ...stormy.people]), { timeout: 60_000, interval: 500 })
      .toBe(true)
    const books = await readBooks(stormy.people)
    expect(books).toEqual(await readBooks(ordered.people))
    expect(new Set(books.map(String)).size).toBe(1)
    expect((await trialBalance(database)).balanced).toBe(true)
    await expectEventsOfEffects(database)
  }, 180_000)

  const killAndRestart = async () => {
    const victim = gateways[1]
    victim?.process.kill('SIGKILL')
    if (victim !== undefined) await once(victim.process, 'exit')
    gateways[1] = await startGateway(env)
  }
})

async function buildHooks(person: Person, name: string): Promise<Hook[]> {
  const { body: listed } = await person.send('GET', '/api/cards')
  const card =
    z.object({ cards: z.array(z.looseObject({ id: z.string() })) }).parse(listed).cards[0]?.id ?? ''
  const { body: banks } = await person.send('GET', '/api/banking')
  const account =
    z.object({ accounts: z.array(z.looseObject({ id: z.string() })) }).parse(banks).accounts[0]?.id ?? ''
  await person.send('POST', '/api/cards/settings', { cardId: card, priority: ['USDC'] })
  return [
    ...Array.from({ length: DEPOSITS }, (_, index) => depositHooks(name, account, index)).flat(),
    ...Array.from({ length: PURCHASES }, (_, index) => purchaseHooks(name, card, index)).flat(),
  ]
}

function depositHooks(name: string, account: string, index: number): Hook[] {
  const states = ['funds_received', 'payment_submitted', index % 4 === 0 ? 'refunded' : 'payment_processed']
  return states.map((state) => {
    const id = `${name}:deposit-${index}:${state}`
    const body = JSON.stringify({
      api_version: 'v0',
      event_id: id,
      event_category: 'virtual_account.activity',
      event_type: 'updated.status_transitioned',
      event_object_id: `${name}:deposit-${index}`,
      event_object_status: state,
      event_object: { virtual_account_id: account, amount: `${index + 1}.25` },
    })
    return { id, provider: 'bridge' as const, body }
  })
}

/** Authorized, then cleared (for less, for all, or for more), voided, or cleared and refunded. */
function purchaseHooks(name: string, card: string, index: number): Hook[] {
  const token = `${name}:buy-${index}`
  const cents = 100 + index * 7
  const authorizationRequest = {
    event_type: 'card_authorization.approval_request',
    token,
    status: 'AUTHORIZATION',
    amount: cents,
    card: { token: card },
    merchant: { acceptor_id: 'SHOP', descriptor: 'Shop', mcc: '5411', country: 'USA' },
    pos: { entry_mode: { pan: 'ECOMMERCE' } },
  }
  const event = (type: string, amount: number) => ({
    token: `${token}:${type}`,
    type,
    amount,
    result: 'APPROVED',
  })
  const buildMessage = (status: string, events: readonly object[]) => ({
    event_type: 'card_transaction.updated',
    token,
    card_token: card,
    status,
    events: [event('AUTHORIZATION', cents), ...events],
  })
  const clearing = event('CLEARING', cents + (index % 3) * 10 - 10)
  const then =
    index % 4 === 0
      ? [buildMessage('VOIDED', [event('AUTHORIZATION_REVERSAL', -cents)])]
      : index % 4 === 1
        ? [buildMessage('SETTLED', [clearing]), buildMessage('SETTLED', [clearing, event('RETURN', -50)])]
        : [buildMessage('SETTLED', [clearing])]
  return [authorizationRequest, ...then].map((message, step) => ({
    id: `${token}:${step}`,
    provider: 'lithic' as const,
    body: JSON.stringify(message),
  }))
}

async function inParallel<Item>(
  width: number,
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const lane = async () => {
    for (let at = next++; at < items.length; at = next++) {
      const item = items[at]
      if (item !== undefined) await work(item, at)
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
}

/** Shuffles by a fixed seed. */
function shuffle<Item>(items: readonly Item[]): Item[] {
  let seed = 42
  const deck = [...items]
  for (let at = deck.length - 1; at > 0; at -= 1) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    const other = seed % (at + 1)
    const [left, right] = [deck[at], deck[other]]
    if (left !== undefined && right !== undefined) [deck[at], deck[other]] = [right, left]
  }
  return deck
}
