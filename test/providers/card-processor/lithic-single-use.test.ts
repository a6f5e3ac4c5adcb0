/** Cards for one purchase at the processor, over a server as strict as Lithic's documentation. */
import { randomInt, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../src/core/base/ids.ts'
import { createLithicProcessor } from '../../../src/providers/card-processor/lithic.ts'
import { json, listenLocally } from '../../contracts/local-server.ts'

const noon = new Date('2026-11-20T12:00:00.000Z')

/** @see https://docs.lithic.com/reference/postcards */
const newCard = z.strictObject({
  type: z.enum(['VIRTUAL', 'PHYSICAL', 'SINGLE_USE', 'MERCHANT_LOCKED']),
  state: z.enum(['OPEN', 'PAUSED']).optional(),
  memo: z.string().max(255).optional(),
  spend_limit: z.int().nonnegative().optional(),
  spend_limit_duration: z.enum(['ANNUALLY', 'FOREVER', 'MONTHLY', 'TRANSACTION']).optional(),
})
/** @see https://docs.lithic.com/reference/patchcardbytoken */
const change = z.strictObject({ state: z.enum(['CLOSED', 'OPEN', 'PAUSED']) })

interface StoredCard extends z.output<typeof newCard> {
  readonly token: string
  readonly pan: string
  readonly cvv: string
}

const cards = new Map<string, StoredCard>()
const byKey = new Map<string, StoredCard>()
let showsNumbers = true
let url = ''

const server = createServer(async (request, response) => {
  const body = await text(request)
  const { authorization, 'idempotency-key': key } = request.headers
  const show = (card: StoredCard) => {
    const { pan, cvv, ...rest } = card
    const numbers = showsNumbers ? { pan, cvv } : {}
    return { ...rest, ...numbers, last_four: pan.slice(-4), exp_month: '06', exp_year: '2030' }
  }
  if (authorization !== 'secret') return json({ message: 'bad key' }, 401)(response)
  const token = /^\/v1\/cards\/([^/]+)$/.exec(request.url ?? '')?.[1]
  const found = token === undefined ? undefined : cards.get(token)
  if (request.method === 'POST' && request.url === '/v1/cards') {
    const parsed = newCard.safeParse(JSON.parse(body))
    if (!parsed.success || !z.uuid().safeParse(key).success)
      return json({ message: 'bad request' }, 400)(response)
    const pan = `4111${String(randomInt(1e11)).padStart(12, '0')}`
    const card = byKey.get(String(key)) ?? { ...parsed.data, token: randomUUID(), pan, cvv: '737' }
    byKey.set(String(key), card)
    cards.set(card.token, card)
    return json(show(card))(response)
  }
  if (found === undefined) return json({ message: 'not found' }, 404)(response)
  if (request.method === 'GET') return json(show(found))(response)
  const parsed = change.safeParse(JSON.parse(body))
  if (request.method !== 'PATCH' || !parsed.success) return json({ message: 'bad request' }, 400)(response)
  cards.set(found.token, { ...found, ...(parsed.data as object) })
  return json({ ...show(found), ...parsed.data })(response)
})
beforeAll(async () => {
  url = await listenLocally(server)
})
afterAll(() => new Promise((resolve) => server.close(resolve)))

const lines: unknown[] = []
const log = Object.fromEntries(
  ['debug', 'info', 'warn', 'error', 'fatal', 'trace'].map((level) => [
    level,
    (...line: unknown[]) => lines.push(line),
  ]),
) as never

const lithic = (isPanReadable: boolean) =>
  createLithicProcessor({
    url,
    apiKey: 'secret',
    isPanReadable,
    secretsAt: () => [],
    eventSecretsAt: () => [],
    log,
  })

const issue = (
  singleUse: { units: bigint; isMerchantLocked: boolean } | null,
  cardId = newId('card', noon),
) => lithic(false).issue({ cardId, nickname: null, at: noon, singleUse })

it('orders a card for one use, or for one merchant, up to its amount', async () => {
  const wanted = [{ units: 1250n, isMerchantLocked: false }, { units: 1250n, isMerchantLocked: true }, null]
  const made = []
  for (const singleUse of wanted) made.push(cards.get((await issue(singleUse)).token))
  const limit = { spend_limit: 1250, spend_limit_duration: 'FOREVER' }
  expect(made).toMatchObject([
    { type: 'SINGLE_USE', ...limit },
    { type: 'MERCHANT_LOCKED', ...limit },
    { type: 'VIRTUAL' },
  ])
  expect(made[2]).not.toHaveProperty('spend_limit')
})

it('gets the same card for a repeated order', async () => {
  const cardId = newId('card', noon)
  const singleUse = { units: 500n, isMerchantLocked: false }
  expect((await issue(singleUse, cardId)).token).toBe((await issue(singleUse, cardId)).token)
})

it('reads the number only where it may, and writes it to no log and no error', async () => {
  const { token, last4 } = await issue({ units: 500n, isMerchantLocked: false })
  const card = { cardId: newId('card', noon), token, last4 }
  const stored = cards.get(token)
  expect(await lithic(false).readCredential(card)).toBeNull()
  expect(await lithic(true).readCredential(card)).toEqual({ pan: stored?.pan, cvc: '737' })
  // Without the number in its answers the processor does not allow that to this program.
  showsNumbers = false
  await expect(lithic(true).readCredential(card)).rejects.toMatchObject({ code: 'provider_unavailable' })
  showsNumbers = true
  await expect(lithic(true).readCredential({ ...card, token: randomUUID() })).rejects.toMatchObject({
    code: 'provider_unavailable',
  })
  expect(lines.length).toBeGreaterThan(0)
  expect(JSON.stringify(lines)).not.toContain(stored?.pan)
})
