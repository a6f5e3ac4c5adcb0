/**
 * Cost of a card decision, next to the bare spend call, on PostgreSQL: open loop at 500 a second, so that a slow answer
 * does not delay the next request, and then at saturation. `npx tsx test/bench/cards.ts`, about 35 seconds.
 */
import { setImmediate as immediate, setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { reserveSpend } from '../../src/books/spending/reserve.ts'
import { newId } from '../../src/core/base/ids.ts'
import { readMessage } from '../../src/providers/card-processor/lithic-messages.ts'
import type { CardAuthorization } from '../../src/providers/card-processor/port.ts'
import { cachedRailControls } from '../../src/providers/rail-controls/cached.ts'
import { createDatabaseRailControls } from '../../src/providers/rail-controls/database.ts'
import { signWebhook, verifyWebhook } from '../../src/providers/standard-webhooks.ts'
import { authorizeCard, type CardAuthorizationDependencies } from '../../src/rails/cards/authorize.ts'
import type { Card } from '../../src/rails/cards/store.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { buildSpend, unlimited } from '../books/spending/scene.ts'
import { createTestDatabase } from '../engines.ts'
import { cardDependencies, issueCard, newKey, newOwner, noon } from '../rails/cards/scene.ts'

const CARDS = 500
const PER_SECOND = 500
const SECONDS = 10
const LANES = 16
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

/**
 * One measurement. @property p50 milliseconds, at {@link PER_SECOND}. @property rate decisions a second at saturation.
 */
export interface CardBenchLine {
  readonly name: string
  readonly p50: number
  readonly p99: number
  readonly rate: number
}

/** Measures both, alternating. @param serverUrl a PostgreSQL server. */
export async function benchCards(serverUrl: string): Promise<readonly CardBenchLine[]> {
  const { url, drop } = await createTestDatabase(serverUrl)
  const database = await openPostgres({ url })
  try {
    await database.migrate()
    const cards = await Promise.all(Array.from({ length: CARDS }, () => boundCard(database)))
    const spend = (index: number) => bareSpend(database, cards[index % CARDS])
    const parts = cachedControls(database)
    const decide = (index: number) => webhook(parts, cards[index % CARDS])
    for (const ask of [spend, decide]) await saturate(ask, 1)
    return [
      { name: 'the bare spend call', ...(await openLoop(spend)), rate: await saturate(spend, 3) },
      {
        name: 'a card decision (signature, card, policy, limits, hold)',
        ...(await openLoop(decide)),
        rate: await saturate(decide, 3),
      },
    ]
  } finally {
    await database.close()
    await drop()
  }
}

/** Caches rail controls briefly, as a gateway does. */
function cachedControls(database: Database): CardAuthorizationDependencies {
  const controls = createDatabaseRailControls({ database, defaultEnabled: true })
  return cardDependencies(database, {
    railControls: cachedRailControls({ controls, clock: () => new Date() }),
  })
}

/** A card that is bound to a key, with money in two assets. */
async function boundCard(database: Database): Promise<Card> {
  const owner = await newOwner(database, { USDC: '100000', USD: '100000' })
  const keyId = await newKey(database, owner, {
    perTransaction: { max: '50' },
    dailyBudget: { max: '100000' },
  })
  return issueCard(database, owner, { keyId, dailyMax: 100_000_000n })
}

async function bareSpend(database: Database, card: Card | undefined): Promise<void> {
  const { accountId = '', keyId = '' } = card ?? {}
  const { verdict } = await reserveSpend(
    database,
    buildSpend({ accountId, keyId, limits: unlimited }, 10_000n),
  )
  if (verdict !== 'allow') throw new Error(`the bench expected allow and got ${verdict}`)
}

/** The webhook's work on a request, from its bytes to the answer. */
async function webhook(parts: CardAuthorizationDependencies, card: Card | undefined): Promise<void> {
  const body = JSON.stringify({
    event_type: 'card_authorization.approval_request',
    token: newId('evt', noon),
    status: 'AUTHORIZATION',
    amount: 1,
    card: { token: card?.token },
    merchant: { acceptor_id: 'SHOP', descriptor: 'Shop', mcc: '5411', country: 'USA' },
    pos: { entry_mode: { pan: 'ECOMMERCE' } },
  })
  const id = newId('evt', noon)
  const headers: Readonly<Record<string, string>> = signWebhook({ id, body, at: noon }, secret)
  const webhookId = verifyWebhook(
    { header: (name) => headers[name], body: Buffer.from(body) },
    [secret],
    noon,
  )
  const request = readMessage(JSON.parse(body))
  if (!isAuthorization(request)) throw new Error('the bench sent something else')
  const { reason } = await authorizeCard(parts, request, { webhookId, now: noon })
  if (reason !== 'approved') throw new Error(`the bench expected an approval and got ${reason}`)
}

function isAuthorization(message: ReturnType<typeof readMessage>): message is CardAuthorization {
  return message.kind === 'authorization'
}

/** The first second is not counted: it pays for what saturation left to be written and collected. */
async function openLoop(ask: (index: number) => Promise<void>): Promise<{ p50: number; p99: number }> {
  const times: number[] = []
  const answers: Promise<void>[] = []
  const start = performance.now()
  for (let index = 0; index < PER_SECOND * SECONDS; index += 1) {
    const due = start + (index * 1_000) / PER_SECOND
    // A timer is up to a millisecond late, which would count as the answer's.
    for (let left = due - performance.now(); left > 0; left = due - performance.now())
      await (left > 1.2 ? pause(1) : immediate())
    answers.push(
      ask(index).then(() => {
        if (index >= PER_SECOND) times.push(performance.now() - due)
      }),
    )
  }
  await Promise.all(answers)
  times.sort((left, right) => left - right)
  const at = (part: number) => times[Math.floor(times.length * part)] ?? 0
  return { p50: at(0.5), p99: at(0.99) }
}

async function saturate(ask: (index: number) => Promise<void>, seconds: number): Promise<number> {
  const end = performance.now() + seconds * 1_000
  let done = 0
  const lane = async (first: number) => {
    for (let index = first; performance.now() < end; index += LANES) {
      await ask(index)
      done += 1
    }
  }
  await Promise.all(Array.from({ length: LANES }, (_, index) => lane(index)))
  return done / seconds
}

export function cardBenchText({ name, p50, p99, rate }: CardBenchLine): string {
  return `${name}: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms at ${PER_SECOND}/s; ${rate.toFixed(0)}/s at most`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const line of await benchCards(
    process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  ))
    process.stdout.write(`${cardBenchText(line)}\n`)
