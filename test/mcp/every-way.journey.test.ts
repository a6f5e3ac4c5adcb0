/** Every way of an agent to the tools, in both modes: one gateway a mode, and the same scenario in each row. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestClient, createWalletClient, erc20Abi, http, parseEther } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { available, external } from '../../src/books/ledger/accounts.ts'
import { post } from '../../src/books/ledger/post.ts'
import { newId } from '../../src/core/base/ids.ts'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { startAlpacaServer } from '../contracts/alpaca-server.ts'
import { ecbDocument, startFeed } from '../contracts/ecb-feed.ts'
import { testServerUrl } from '../engines.ts'
import { sharedGateway } from '../journeys/gateway.ts'
import { enrollMfa, newGuest, type Person, requestJson } from '../journeys/people.ts'
import { openProduction, type Production } from '../journeys/production-gateway.ts'
import { startVendors } from '../journeys/vendor-server.ts'
import { computeTotp } from '../people/identity/signed-in.ts'
import { everyWay, type Mode, passEveryTool } from './every-way.ts'

const directory = mkdtempSync(join(tmpdir(), 'bursar-ways-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe('an agent in the sandbox', () => {
  const gateway = { origin: sharedGateway() }
  let mode: Mode
  beforeAll(async () => {
    const { origin } = gateway
    mode = {
      origin,
      directory,
      page: origin.replace('127.0.0.1', 'localhost'),
      owner: () => newGuest(origin),
      purchase: async (cardId) => {
        const body = { cardId, amount: '2', merchant: 'Corner Shop', mcc: '5411' }
        const bought = await requestJson(origin, 'POST', '/sandbox/authorizations', { body })
        expect(bought).toMatchObject({ body: { result: 'APPROVED' } })
      },
    }
  }, 120_000)

  it.each(everyWay)(
    'an agent of %s over %s with %s uses every kind of tool',
    async (...way) => {
      await passEveryTool(way, mode)
    },
    60_000,
  )
})

describe.skipIf(testServerUrl === undefined)('an agent in production', () => {
  const closing: (() => unknown)[] = []
  let mode: Mode
  beforeAll(async () => {
    const vendors = await startVendors()
    const alpaca = await startAlpacaServer()
    const rates = await startFeed(ecbDocument(new Date().toISOString().slice(0, 10)))
    closing.push(vendors.close, alpaca.close, rates.close)
    const environment = {
      RATE_MUTATIONS: '100000/60',
      FX_RATES_URL: rates.url,
      SCREENING_URL: vendors.url,
      KYC_LIMITS: 'none:100,basic:1000',
      ...{ LITHIC_API_URL: vendors.url, LITHIC_API_KEY: 'a-key-of-ours' },
      ...{ ALPACA_URL: alpaca.url, ALPACA_DATA_URL: alpaca.url, ALPACA_FIRM_ACCOUNT_ID: alpaca.firm.id },
      ...{ ALPACA_API_KEY: 'key', ALPACA_API_SECRET: 'secret' },
    }
    const production = await openProduction(environment)
    closing.push(production.close)
    const { accountId } = await production.signIn('founder@example.com')
    await production.start({ ...environment, FOUNDER_ACCOUNT: accountId })
    await openBrokerage(production, { accountId, brokerageAccount: alpaca.add({ shares: 1_000 }).id })
    const { origin } = production.gateway()
    const owner = await production.signIn('founder@example.com')
    const secret = await enrollMfa(owner)
    let steppedUpAt = Date.now()
    for (const rail of ['wallet-transfer', 'investing', 'card-payments'])
      expect(await owner.send('PUT', `/api/rails/${rail}/controls`, { enabled: true })).toMatchObject({
        status: 200,
      })
    await fund(production, owner)
    mode = {
      origin,
      page: origin.replace('127.0.0.1', 'localhost'),
      directory,
      // The account at the broker is this owner's.
      owner: async () => {
        // A second factor counts for five minutes, which a slow machine may need for the rows.
        if (Date.now() - steppedUpAt < 120_000) return owner
        const code = computeTotp(secret, new Date())
        const verified = await owner.send('POST', '/api/security/mfa', { action: 'verify', code })
        expect(verified).toMatchObject({ status: 200 })
        steppedUpAt = Date.now()
        return owner
      },
      purchase: async () => {
        const body = JSON.stringify({
          event_type: 'card_authorization.approval_request',
          token: randomUUID(),
          status: 'AUTHORIZATION',
          amount: 200,
          card: { token: vendors.lastToken() },
          merchant: { acceptor_id: 'SHOP', descriptor: 'Corner Shop', mcc: '5411', country: 'USA' },
          pos: {
            entry_mode: { pan: 'ECOMMERCE' },
            terminal: { partial_approval_capable: false, type: 'UNKNOWN' },
          },
        })
        const signature = signWebhook({ id: randomUUID(), body, at: new Date() }, `whsec_${'c'.repeat(32)}`)
        const headers = { 'content-type': 'application/json', ...signature }
        const response = await fetch(`${origin}/api/webhooks/lithic`, { method: 'POST', headers, body })
        expect(await response.json()).toMatchObject({ result: 'APPROVED' })
      },
    }
  }, 180_000)
  afterAll(async () => {
    for (const close of closing.reverse()) await close()
  }, 60_000)

  it.each(everyWay)(
    'an agent of %s over %s with %s uses every kind of tool',
    async (...way) => {
      await passEveryTool(way, mode)
    },
    60_000,
  )
})

const chainOfNode = z.object({
  chain: z.object({ tokens: z.object({ USDC: z.templateLiteral(['0x', z.string()]) }) }),
  payer: z.object({ privateKey: z.templateLiteral(['0x', z.string()]) }),
})

/**
 * Gives the sponsor gas, and the owner 200 USDC in a transaction of the sandbox's payer. USD cash comes from the bank,
 * whose onboarding no server here plays, so it is posted.
 */
/** An account at the broker that was opened before. */
async function openBrokerage(
  { databaseUrl }: Production,
  { accountId, brokerageAccount }: { accountId: string; brokerageAccount: string },
): Promise<void> {
  const database = await openPostgres({ url: databaseUrl })
  const at = new Date()
  await database.kysely
    .insertInto('brokerage_account')
    .values({
      ...{ account_id: accountId, status: 'active', provider_id: brokerageAccount, sealed: null },
      ...{ created_at: at, checked_at: at },
    })
    .execute()
  await database.close()
}

async function fund({ node, rpcUrl, databaseUrl }: Production, owner: Person): Promise<void> {
  const { body: credentials } = await requestJson(node.origin, 'GET', '/sandbox/credentials')
  const { chain, payer } = chainOfNode.parse(credentials)
  const account = privateKeyToAccount(payer.privateKey)
  const transport = http(rpcUrl)
  const development = createTestClient({ mode: 'anvil', transport })
  for (const { address } of [account, privateKeyToAccount(`0x${'1'.repeat(64)}`)])
    await development.setBalance({ address, value: parseEther('100') })
  const wallet = async () => (await owner.send('GET', '/api/wallets')).body
  const address = z.templateLiteral(['0x', z.string()]).parse((await wallet()).safeAddress)
  await createWalletClient({ account, transport, chain: baseSepolia }).writeContract({
    address: chain.tokens.USDC,
    abi: erc20Abi,
    functionName: 'transfer',
    args: [address, 200_000_000n],
  })
  await vi.waitFor(
    async () => {
      // Deposits are booked two blocks later.
      await development.mine({ blocks: 1 })
      expect(await wallet()).toMatchObject({
        balances: expect.arrayContaining([expect.objectContaining({ token: 'USDC', amount: '200' })]),
      })
    },
    { timeout: 60_000, interval: 1_000 },
  )
  const database = await openPostgres({ url: databaseUrl })
  const money = { asset: 'USD', units: 10_000n } as const
  await post(database, {
    id: newId('tx', new Date()),
    kind: 'deposit',
    reference: owner.accountId,
    at: new Date(),
    postings: [{ source: external('bank'), destination: available(owner.accountId, 'bank'), money }],
  })
  await database.close()
}
