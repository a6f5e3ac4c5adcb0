/** Disputes at Lithic, against a server that takes what Lithic's published types have and nothing else. */
import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { silentLog } from '../../../src/core/base/log.ts'
import { writeTextPdf } from '../../../src/core/base/text-pdf.ts'
import { createLithicProcessor } from '../../../src/providers/card-processor/lithic.ts'

const TRANSACTION = 'b120c880-05a2-45f9-8ba4-1bb1ff6ebf55'
const DISPUTE = '12345624-aa69-4cbc-a946-30d90181b621'
const filed = z.strictObject({
  transaction_token: z.uuid(),
  amount: z.int().positive(),
  reason: z.enum([
    'ATM_CASH_MISDISPENSE',
    'CANCELLED',
    'DUPLICATED',
    'FRAUD_CARD_NOT_PRESENT',
    'FRAUD_CARD_PRESENT',
    'FRAUD_OTHER',
    'GOODS_SERVICES_NOT_AS_DESCRIBED',
    'GOODS_SERVICES_NOT_RECEIVED',
    'INCORRECT_AMOUNT',
    'MISSING_AUTH',
    'OTHER',
    'PROCESSING_ERROR',
    'RECURRING_TRANSACTION_NOT_CANCELLED',
    'REFUND_NOT_PROCESSED',
  ]),
  customer_filed_date: z.iso.datetime().optional(),
  customer_note: z.string().optional(),
})

let server: Server
let url = ''
let world = {
  disputes: [] as object[],
  evidences: [] as { upload_status: string }[],
  refuses: false,
  breaks: 0,
}
const files: Buffer[] = []
const asked: string[] = []

/** @returns status and body. */
function answer(method: string, path: string, key: string | undefined, body: Buffer): [number, unknown] {
  if (path.startsWith('/files/')) {
    if (key !== undefined) return [400, { message: 'no credentials here' }]
    files.push(body)
    world.evidences = [{ upload_status: 'UPLOADED' }]
    return [200, {}]
  }
  if (key !== 'secret') return [401, {}]
  if (world.breaks > 0) {
    world.breaks -= 1
    return [500, {}]
  }
  const { pathname, searchParams } = new URL(path, url)
  const json = () => JSON.parse(body.toString()) as unknown
  switch (`${method} ${pathname}`) {
    case 'GET /v1/disputes':
      return searchParams.get('transaction_tokens') === TRANSACTION
        ? [200, { data: world.disputes, has_more: false }]
        : [400, {}]
    case 'POST /v1/disputes': {
      const read = filed.safeParse(json())
      if (!read.success || world.refuses) return [422, { message: String(read.error) }]
      const { transaction_token, amount } = read.data
      const dispute = { token: DISPUTE, transaction_token, amount, status: 'NEW', resolution_amount: null }
      world.disputes.push(dispute)
      return [200, dispute]
    }
    case `GET /v1/disputes/${DISPUTE}/evidences`:
      return [200, { data: world.evidences, has_more: false }]
    case `POST /v1/disputes/${DISPUTE}/evidences`:
      world.evidences.push({ upload_status: 'PENDING' })
      return [200, { token: TRANSACTION, upload_status: 'PENDING', upload_url: `${url}/files/1?signed=1` }]
    case `POST /v1/transactions/${TRANSACTION}/expire_authorization`:
      return world.refuses ? [422, {}] : [200, {}]
    default:
      return [404, {}]
  }
}

beforeAll(async () => {
  server = createServer((incoming, response) => {
    const parts: Buffer[] = []
    incoming.on('data', (part: Buffer) => parts.push(part))
    incoming.on('end', () => {
      asked.push(`${incoming.method} ${incoming.url}`)
      const [status, body] = answer(
        incoming.method ?? '',
        incoming.url ?? '',
        incoming.headers.authorization,
        Buffer.concat(parts),
      )
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
})
afterAll(() => new Promise((resolve) => server.close(resolve)))
beforeEach(() => {
  world = { disputes: [], evidences: [], refuses: false, breaks: 0 }
  files.length = 0
  asked.length = 0
})

const lithic = (apiKey: string | null = 'secret') =>
  createLithicProcessor({ url, apiKey, secretsAt: () => [], eventSecretsAt: () => [], log: silentLog })
const request = {
  transactionToken: TRANSACTION,
  units: 1_250n,
  reason: 'not_delivered',
  note: 'Nothing came',
  filedAt: new Date('2026-11-20T12:00:00.000Z'),
  evidence: { filename: 'rec_1.pdf', content: writeTextPdf(['A (dispute)', '\\ 1']) },
} as const

describe('disputes at Lithic', () => {
  it('are opened once, with their evidence, however often it is asked', async () => {
    const { dispute } = lithic()
    const opened = {
      kind: 'dispute',
      token: DISPUTE,
      transactionToken: TRANSACTION,
      status: 'open',
      units: 0n,
    }
    expect(await dispute?.(request)).toEqual(opened)
    expect(await dispute?.(request)).toEqual(opened)
    expect(asked.filter((line) => line === 'POST /v1/disputes')).toHaveLength(1)
    expect(files).toHaveLength(1)
    expect(files[0]?.toString('latin1')).toMatch(/^%PDF-1\.4\n[\s\S]*A \\\(dispute\\\)[\s\S]*%%EOF\n$/)
  })

  it('go on after an answer that failed, and are refused for good by a refusal', async () => {
    const { dispute, expire } = lithic()
    world.breaks = 1
    await expect(dispute?.(request)).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await dispute?.(request)).toMatchObject({ token: DISPUTE })
    world = { ...world, disputes: [], refuses: true }
    expect(await dispute?.(request)).toBeNull()
    expect(await expire?.({ token: TRANSACTION, cardToken: 'card' })).toBe(false)
    world.refuses = false
    expect(await expire?.({ token: TRANSACTION, cardToken: 'card' })).toBe(true)
  })

  it('need an API key', () => {
    expect([lithic(null).dispute, lithic(null).expire]).toEqual([null, null])
  })

  it.each([
    ['SUBMITTED', 'open', 0n],
    ['REPRESENTMENT', 'open', 0n],
    ['CASE_WON', 'won', 900n],
    ['CASE_CLOSED', 'lost', 0n],
  ])('in the state %s are %s', (status, said, units) => {
    const message = {
      event_type: 'dispute.updated',
      token: DISPUTE,
      transaction_token: TRANSACTION,
      amount: 1_250,
      resolution_amount: status === 'SUBMITTED' ? null : 900,
      status,
    }
    expect(lithic().read(message)).toMatchObject({ kind: 'dispute', token: DISPUTE, status: said, units })
    expect(() => lithic().read({ ...message, status: 'WON' })).toThrow()
  })
})
