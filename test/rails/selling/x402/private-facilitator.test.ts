import type { FacilitatorClient } from '@x402/core/server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Attempts, createAttempts } from '../../../../src/rails/selling/x402/attempt.ts'
import {
  type PrivateFacilitator,
  servePrivately,
} from '../../../../src/rails/selling/x402/private-facilitator.ts'

let requestCount = 0
const facilitator: FacilitatorClient = {
  verify: async () => {
    requestCount += 1
    return { isValid: true }
  },
  settle: () => Promise.reject(new Error('secret of the inside')),
  getSupported: async () => ({ kinds: [], extensions: [], signers: {} }),
}
const body = JSON.stringify({ paymentPayload: {}, paymentRequirements: {} })

describe('the private facilitator', () => {
  let attempts: Attempts
  let listener: PrivateFacilitator
  beforeAll(async () => {
    attempts = createAttempts()
    listener = await servePrivately(facilitator, attempts)
  })
  afterAll(() => listener.close())

  const within = (work: () => Promise<Response>) =>
    attempts
      .begin({ id: 'pay_1', units: 1n, agreed: 1n, deliver: async () => ({}), onTransaction: () => {} }, work)
      .then(({ response }) => response)
  const post = (route: string, headers: Record<string, string>) =>
    fetch(`${listener.url}${route}`, { method: 'POST', headers, body })

  it('listens on loopback only', () => {
    expect(listener.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  })

  it.each([{}, { authorization: 'Bearer ' }, { authorization: `Bearer ${'a'.repeat(43)}` }])(
    'rejects requests with %j',
    async (headers) => {
      for (const route of ['/verify', '/settle', '/supported', '/'])
        expect((await post(route, headers)).status).toBe(401)
      expect(requestCount).toBe(0)
    },
  )

  it('serves an open attempt of this process, and hides failure details', async () => {
    const verified = await within(() => post('/verify', listener.headers()))
    expect(await verified.json()).toEqual({ isValid: true })
    const failed = await within(() => post('/settle', listener.headers()))
    expect(failed.status).toBe(502)
    expect(await failed.text()).not.toContain('secret')
  })

  it('rejects an attempt that has ended', async () => {
    let headers: Record<string, string> = {}
    await within(async () => {
      headers = listener.headers()
      return new Response()
    })
    expect((await post('/verify', headers)).status).toBe(502)
  })
})
