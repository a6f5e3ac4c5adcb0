/** Callers that each send one transfer after the other, and repeat one with its idempotency key until its outcome is final. */
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { newGuest, type Person } from '../journeys/people.ts'

/** Of each transfer, in USDC and its smallest units. */
const AMOUNT = '0.01'
export const UNITS = 10_000n
/** Above the gateway's own limit of ten seconds. */
const ANSWER_MS = 15_000
const REPEAT_MS = 100
/** Between two transfers of a caller. */
const REST_MS = 20

const answer = z.looseObject({
  status: z.union([z.string(), z.number()]).optional(),
  code: z.string().optional(),
  transferId: z.string().optional(),
  retryAfter: z.number().optional(),
})

interface Answer {
  readonly status: number | 'lost'
  readonly code: string
  readonly transferId: string | undefined
  readonly isFinal: boolean
}

/** All answers to one idempotency key, in order. */
export interface Call {
  readonly key: string
  readonly payer: Payer
  readonly answers: Answer[]
}

export interface Payer {
  readonly person: Person
  readonly credential: string
}

export interface Load {
  readonly calls: readonly Call[]
  countConfirmed(): number
  /** Longest time without a confirmed transfer, since the last call of `measure`. */
  longestPauseMs(): number
  measure(): void
  /** Lets each caller end its transfer. */
  stop(): Promise<void>
  /** Ends at once, whatever is open. */
  abort(): Promise<void>
}

/** Guests with a key each: the load of one account would wait for its own lock. */
export async function openPayers(origin: string, count: number): Promise<readonly Payer[]> {
  const payers: Payer[] = []
  for (let index = 0; index < count; index += 1) {
    const person = await newGuest(origin)
    const { body } = await person.send('POST', '/api/developer/keys', {
      name: 'Cluster',
      scopes: ['wallets:read', 'wallets:transfer'],
      policy: {
        perTransaction: { max: '1' },
        dailyBudget: { max: '1000' },
        categories: { allow: ['transfer'] },
      },
    })
    payers.push({ person, credential: `Bearer ${z.string().parse(body.key)}` })
  }
  return payers
}

/** Starts the load. @param destination receives every transfer of this load, and nothing else. */
export function startLoad(
  origin: string,
  { payers, destination, name }: { payers: readonly Payer[]; destination: string; name: string },
): Load {
  const calls: Call[] = []
  let isOver = false
  let lastConfirmed = performance.now()
  let longestPause = 0
  let confirmed = 0
  const aborting = new AbortController()
  const caller = async (payer: Payer) => {
    while (!isOver) {
      const call: Call = { key: `${name}-${calls.length}`, payer, answers: [] }
      calls.push(call)
      const { code } = await callUntilFinal(origin, destination, call, aborting.signal)
      if (code === 'confirmed') {
        const now = performance.now()
        longestPause = Math.max(longestPause, now - lastConfirmed)
        lastConfirmed = now
        confirmed += 1
      }
      await pause(REST_MS)
    }
  }
  const callers = payers.map((payer) =>
    caller(payer).catch((error: unknown) => {
      if (!aborting.signal.aborted) throw error
    }),
  )
  return {
    calls,
    countConfirmed: () => confirmed,
    longestPauseMs: () => Math.max(longestPause, performance.now() - lastConfirmed),
    measure: () => {
      longestPause = 0
    },
    stop: async () => {
      isOver = true
      await Promise.all(callers)
    },
    abort: async () => {
      isOver = true
      aborting.abort()
      await Promise.all(callers)
    },
  }
}

/** Repeats a call until its outcome is final, and records each answer. */
export async function callUntilFinal(
  origin: string,
  destination: string,
  call: Call,
  signal?: AbortSignal,
): Promise<Answer> {
  for (let attempt = 0; attempt < 2_000; attempt += 1) {
    const found = await send(origin, destination, call)
    call.answers.push(found)
    if (found.isFinal) return found
    signal?.throwIfAborted()
    await pause(REPEAT_MS)
  }
  throw new Error(`no final outcome for ${call.key}: ${JSON.stringify(call.answers.at(-1))}`)
}

async function send(origin: string, destination: string, { key, payer }: Call): Promise<Answer> {
  try {
    const response = await fetch(`${origin}/api/wallets/transfer`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: payer.credential,
        'idempotency-key': key,
      },
      body: JSON.stringify({ destination, amount: AMOUNT, signature: 'sandbox' }),
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    const body = answer.parse(await response.json())
    const isOpen = body.status === 'settlement_pending' || body.retryAfter !== undefined
    return {
      status: response.status,
      code: body.code ?? String(body.status),
      transferId: body.transferId,
      isFinal: !isOpen,
    }
  } catch {
    return { status: 'lost', code: 'lost', transferId: undefined, isFinal: false }
  }
}
