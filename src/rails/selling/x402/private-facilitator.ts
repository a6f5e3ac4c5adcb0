/**
 * Serves the facilitator on a private loopback listener for the v1 middleware, which supports HTTP facilitators only.
 * Each call must carry a secret created at start, compared in constant time.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import type { FacilitatorClient } from '@x402/core/server'
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types'
import { Hono } from 'hono'
import { z } from 'zod'
import { randomToken } from '../../../core/base/ids.ts'
import type { Attempts } from './attempt.ts'

const ATTEMPT_HEADER = 'x-attempt'

const call = z.object({
  // Only our own middleware can call this; it sends validated data, and the facilitator checks every field it uses.
  paymentPayload: z.custom<PaymentPayload>((value) => typeof value === 'object' && value !== null),
  paymentRequirements: z.custom<PaymentRequirements>((value) => typeof value === 'object' && value !== null),
})

/** @property headers required headers of each call. */
export interface PrivateFacilitator {
  readonly url: `http://${string}`
  headers(): Record<string, string>
  close(): Promise<void>
}

/** Listens on an ephemeral port of 127.0.0.1. */
export async function servePrivately(
  facilitator: FacilitatorClient,
  attempts: Attempts,
  listen: Listen = listenOnLoopback,
): Promise<PrivateFacilitator> {
  const bearer = `Bearer ${randomToken(32)}`
  const app = new Hono()
  app.use(async (c, next) => {
    if (!isSame(c.req.header('authorization') ?? '', bearer)) return c.json({ error: 'unauthorized' }, 401)
    return next()
  })
  app.post('/verify', async (c) => {
    const { paymentPayload, paymentRequirements } = call.parse(await c.req.json())
    const verify = () => facilitator.verify(paymentPayload, paymentRequirements)
    return c.json(await attempts.resume(c.req.header(ATTEMPT_HEADER) ?? '', verify))
  })
  app.post('/settle', async (c) => {
    const { paymentPayload, paymentRequirements } = call.parse(await c.req.json())
    const settle = () => facilitator.settle(paymentPayload, paymentRequirements)
    return c.json(await attempts.resume(c.req.header(ATTEMPT_HEADER) ?? '', settle))
  })
  // The attempt records the details; the middleware only needs an error status.
  app.onError((_error, c) => c.json({ error: 'facilitator failed' }, 502))

  const { port, close } = await listen(app)
  return {
    url: `http://127.0.0.1:${port}`,
    headers: () => ({ authorization: bearer, [ATTEMPT_HEADER]: attempts.current().id }),
    close,
  }
}

/** Serves an app to this process alone. */
export type Listen = (
  app: Pick<Hono, 'fetch'>,
) => Promise<{ readonly port: number; readonly close: () => Promise<void> }>

const listenOnLoopback: Listen = (app) => {
  return new Promise((resolve, reject) => {
    const close = () => new Promise<void>((closed) => server.close(() => closed()))
    const listening = ({ port }: AddressInfo) => resolve({ port, close })
    const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, listening)
    server.once('error', reject)
  })
}

function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}
