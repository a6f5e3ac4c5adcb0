/** Transfers of a gateway's demo wallet, by a client with idempotency keys. */
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { sendJson, type TimedAnswer } from './ask.ts'

const credentials = z.object({ demoApiKey: z.string() })
const wallet = z.object({
  balances: z.array(z.object({ token: z.string(), amount: z.string(), held: z.string() })),
})

export interface Client {
  readonly key: string
  get(path: string): Promise<TimedAnswer>
  post(path: string, body: unknown, idempotencyKey?: string): Promise<TimedAnswer>
  transfer(amount: string, idempotencyKey: string): Promise<TimedAnswer>
  /** Repeats a transfer until its outcome is final. */
  transferUntilFinal(amount: string, idempotencyKey: string): Promise<TimedAnswer>
  usdc(): Promise<{ amount: string; held: string }>
}

export async function createClient(origin: string): Promise<Client> {
  const { demoApiKey: key } = credentials.parse((await sendJson(`${origin}/sandbox/credentials`)).body)
  const authorization = `Bearer ${key}`
  const get = (path: string) => sendJson(`${origin}${path}`, { headers: { authorization } })
  const post = (path: string, body: unknown, idempotencyKey?: string) =>
    sendJson(`${origin}${path}`, {
      method: 'POST',
      headers: { authorization, ...(idempotencyKey ? { 'idempotency-key': idempotencyKey } : {}) },
      body,
    })
  const transfer = (amount: string, idempotencyKey: string) =>
    post(
      '/api/wallets/transfer',
      { destination: '0x000000000000000000000000000000000000dEaD', amount, signature: 'sandbox' },
      idempotencyKey,
    )
  return {
    key,
    get,
    post,
    transfer,
    transferUntilFinal: async (amount, idempotencyKey) => {
      for (let attempt = 0; attempt < 100; attempt += 1) {
        const answer = await transfer(amount, idempotencyKey)
        const isOpen = answer.body.status === 'settlement_pending' || answer.body.retryAfter !== undefined
        if (!isOpen) return answer
        await pause(200)
      }
      throw new Error(`no final outcome for ${idempotencyKey}`)
    },
    usdc: async () => {
      const { balances } = wallet.parse((await get('/api/wallets')).body)
      const { amount = '', held = '' } = balances.find(({ token }) => token === 'USDC') ?? {}
      return { amount, held }
    },
  }
}
