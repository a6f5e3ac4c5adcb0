/** Circle’s attestation service, against a local server that is as strict as its documents. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createIris } from '../../../src/providers/attester/iris.ts'

const HASH = `0x${'ab'.repeat(32)}` as const
const NONCE = `0x${'cd'.repeat(32)}` as const
const complete = {
  message: '0x0000000100000006',
  eventNonce: NONCE,
  attestation: `0x${'11'.repeat(130)}`,
  decodedMessage: { sourceDomain: '6', destinationDomain: '3' },
  cctpVersion: 2,
  status: 'complete',
  delayReason: null,
}

describe('Iris', () => {
  let server: Server
  let url = ''
  let answer: { status: number; body: unknown } = { status: 200, body: {} }
  let asked: string[] = []
  beforeAll(async () => {
    server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://iris')
      asked.push(`${request.method} ${request.url}`)
      const isKnown =
        (request.method === 'GET' && /^\/v2\/messages\/\d+$/.test(pathname)
          ? /^0x[0-9a-f]{64}$/.test(searchParams.get('transactionHash') ?? '')
          : request.method === 'GET' && /^\/v2\/burn\/USDC\/fees\/\d+\/\d+$/.test(pathname)) ||
        (request.method === 'POST' && /^\/v2\/reattest\/0x[0-9a-f]{64}$/.test(pathname))
      const { status, body } = isKnown ? answer : { status: 405, body: { message: 'no such route' } }
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => server.close())
  beforeEach(() => {
    asked = []
  })

  const iris = () => createIris({ url })
  const find = () => iris().find({ source: 6, transactionHash: HASH })
  const fees = () => iris().fees({ source: 6, destination: 3 }, AbortSignal.timeout(2_000))

  it('finds what is attested, and skips what is not yet', async () => {
    const pending = { ...complete, message: '0x', attestation: 'PENDING', status: 'pending_confirmations' }
    const unsigned = { ...complete, attestation: null }
    const older = { ...complete, cctpVersion: 1 }
    answer = { status: 200, body: { messages: [pending, complete, unsigned, older] } }
    expect(await find()).toEqual([{ message: complete.message, attestation: complete.attestation }])
    expect(asked).toEqual([`GET /v2/messages/6?transactionHash=${HASH}`])
  })

  it('takes 404 as not seen yet, and any other answer as none', async () => {
    answer = { status: 404, body: { code: 404, error: 'Message not found' } }
    expect(await find()).toEqual([])
    for (const status of [400, 429, 500]) {
      answer = { status, body: {} }
      await expect(find()).rejects.toThrow('unavailable')
    }
    for (const body of ['not json', {}, { messages: [{ ...complete, status: 'maybe' }] }]) {
      answer = { status: 200, body }
      await expect(find()).rejects.toThrow('bad_answer')
    }
  })

  it('reads fees in basis points with fractions, rounded up', async () => {
    answer = {
      status: 200,
      body: [
        { finalityThreshold: 1_000, minimumFee: 1.3 },
        { finalityThreshold: 2_000, minimumFee: 0 },
      ],
    }
    expect(await fees()).toEqual({ fast: 130n, standard: 0n })
    answer = { status: 200, body: [{ finalityThreshold: 2_000, minimumFee: 0.00001 }] }
    expect(await fees()).toEqual({ fast: null, standard: 1n })
    expect(asked).toContain('GET /v2/burn/USDC/fees/6/3')
  })

  it('refuses fees that are none', async () => {
    for (const body of [{}, [{ finalityThreshold: 1_000, minimumFee: -1 }], [{ finalityThreshold: 1_000 }]]) {
      answer = { status: 200, body }
      await expect(fees()).rejects.toThrow('bad_answer')
    }
    answer = { status: 404, body: {} }
    expect(await fees()).toEqual({ fast: null, standard: null })
  })

  it('asks for an expired attestation again', async () => {
    answer = {
      status: 200,
      body: { message: 'Re-attestation successfully requested for nonce.', nonce: NONCE },
    }
    await iris().renew(NONCE)
    expect(asked).toEqual([`POST /v2/reattest/${NONCE}`])
    answer = { status: 400, body: {} }
    await expect(iris().renew(NONCE)).rejects.toThrow('unavailable')
  })
})
