/** Every way of an agent to the tools, in the sandbox: one gateway, one owner for each row of the table. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest, requestJson } from '../journeys/people.ts'
import { everyWay, type Mode, passEveryTool } from './every-way.ts'

const directory = mkdtempSync(join(tmpdir(), 'bursar-ways-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe('an agent in the sandbox', () => {
  let gateway: Gateway
  let mode: Mode
  beforeAll(async () => {
    gateway = await startGateway({ RATE_MUTATIONS: '100000/60' })
    const { origin } = gateway
    mode = {
      origin,
      directory,
      // Browsers get the pages on the origin where passkeys work.
      page: origin.replace('127.0.0.1', 'localhost'),
      newOwner: () => newGuest(origin),
      purchase: async (cardId) => {
        const body = { cardId, amount: '2', merchant: 'Corner Shop', mcc: '5411' }
        const bought = await requestJson(origin, 'POST', '/sandbox/authorizations', { body })
        expect(bought).toMatchObject({ body: { result: 'APPROVED' } })
      },
    }
  }, 120_000)
  afterAll(() => gateway?.stop())

  it.each(everyWay)(
    'of %s over %s with %s uses every kind of tool',
    async (...way) => {
      await passEveryTool(way, mode)
    },
    60_000,
  )
})
