/** Production on a local node with the id of Base: its gateway, vendors, and owners whose own passkeys sign. */
import { randomUUID } from 'node:crypto'
import { expect, vi } from 'vitest'
import { z } from 'zod'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { ecbDocument, startFeed } from '../contracts/ecb-feed.ts'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import type { Mainnet } from './mainnet.ts'
import { enrollMfa, type Person } from './people.ts'
import { openProductionOn, type ProductionGateway } from './production-gateway.ts'
import { startVendors } from './vendor-server.ts'

/** Chain address that receives what cards spent. */
export const treasury = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
const rails = ['wallet-transfer', 'wallet-gasless', 'x402-fx', 'card-payments']
const lithicSecret = `whsec_${'c'.repeat(32)}`
const hex = z.templateLiteral(['0x', z.string()])
const intentAnswer = z.looseObject({
  intentId: z.string(),
  challenge: z.string(),
  typedData: z.looseObject({ domain: z.looseObject({ chainId: z.literal(8453) }) }),
})

/** An owner with a second factor. @property sign signs an intent with the passkey that owns the wallet. */
export interface Owner extends Person {
  readonly safe: `0x${string}`
  sign(intent: unknown): { readonly intentId: string; readonly signature: string }
}

export interface OnMainnet {
  readonly production: ProductionGateway
  readonly vendors: Awaited<ReturnType<typeof startVendors>>
  readonly founder: Person
  newOwner(email: string): Promise<Owner>
  /** Sends a signed message of the card processor. @returns the answer. */
  tellLithic(message: object): Promise<Record<string, unknown>>
  /** Kills the gateway, and starts it again. */
  killAndStart(): Promise<void>
  close(): Promise<void>
}

/** Variables of a gateway on this chain. */
export const buildNodeEnv = ({ url }: Pick<Mainnet, 'url'>) => ({
  CHAIN: '',
  CHAINS: 'base',
  CHAIN_RPC_URL_BASE: url,
})

/** Requires a database server. @param more added to the environment. @param moreRails enabled besides wallets and cards. */
export async function openOnMainnet(
  base: Mainnet,
  more: Readonly<Record<string, string>> = {},
  moreRails: readonly string[] = [],
): Promise<OnMainnet> {
  const vendors = await startVendors()
  const rates = await startFeed(ecbDocument(new Date().toISOString().slice(0, 10)))
  const env = {
    RATE_MUTATIONS: '100000/60',
    FX_RATES_URL: rates.url,
    SCREENING_URL: vendors.url,
    KYC_LIMITS: 'none:100,basic:1000',
    LITHIC_API_URL: vendors.url,
    LITHIC_API_KEY: 'a-key-of-ours',
    CARD_TREASURY: treasury,
    ...more,
  }
  const closeVendors = async () => {
    rates.close()
    vendors.close()
  }
  const production = await openProductionOn(buildNodeEnv(base), env).catch(async (error: unknown) => {
    await closeVendors()
    throw error
  })
  const { accountId } = await production.signIn('founder@example.com')
  const start = () => production.start({ ...env, FOUNDER_ACCOUNT: accountId })
  await start()
  const founder = await production.signIn('founder@example.com')
  await enrollMfa(founder)
  for (const rail of [...rails, ...moreRails])
    await requireSuccess(founder.send('PUT', `/api/rails/${rail}/controls`, { enabled: true }))
  const origin = () => production.gateway().origin
  return {
    production,
    vendors,
    founder,
    newOwner: async (email) => {
      const person = await production.signIn(email)
      const device = newAuthenticator(origin().replace('127.0.0.1', 'localhost'))
      const { body } = await person.send('POST', '/api/auth/webauthn', { action: 'register' })
      const credential = device.create(body.publicKey)
      await requireSuccess(person.send('POST', '/api/auth/webauthn', { action: 'register', credential }))
      await enrollMfa(person)
      return {
        ...person,
        safe: hex.parse((await person.send('GET', '/api/wallets')).body.safeAddress),
        sign: (intent) => {
          const { challenge, intentId } = intentAnswer.parse(intent)
          const answer = device.get({ challenge, rpId: 'localhost', userVerification: 'required' })
          return { intentId, signature: Buffer.from(JSON.stringify(answer)).toString('base64url') }
        },
      }
    },
    tellLithic: async (message) => {
      const body = JSON.stringify(message)
      const signature = signWebhook({ id: randomUUID(), body, at: new Date() }, lithicSecret)
      const headers = { 'content-type': 'application/json', ...signature }
      const response = await fetch(`${origin()}/api/webhooks/lithic`, { method: 'POST', headers, body })
      return z.record(z.string(), z.unknown()).parse(await response.json())
    },
    killAndStart: async () => {
      production.gateway().process.kill('SIGKILL')
      await start()
    },
    close: async () => {
      await production.close()
      await closeVendors()
    },
  }
}

async function requireSuccess(answer: ReturnType<Person['send']>): Promise<void> {
  const { status, body } = await answer
  if (status !== 200) throw new Error(`a step of the scene failed: ${status} ${JSON.stringify(body)}`)
}

/** Somebody with a wallet of ours and 50 USDC in it, and a key that may pay 5 USD at a time from it. */
export async function openPayer({ production }: Pick<OnMainnet, 'production'>, base: Mainnet) {
  const person = await production.signIn('ada@example.com')
  await enrollMfa(person)
  const safe = hex.parse((await person.send('GET', '/api/wallets')).body.safeAddress)
  await base.pay(safe, 50_000_000n)
  const { body } = await person.send('POST', '/api/developer/keys', {
    name: 'Payer',
    scopes: ['wallets:transfer'],
    policy: {
      perTransaction: { max: '5' },
      dailyBudget: { max: '50' },
      categories: { allow: ['transfer'] },
    },
  })
  await vi.waitFor(
    async () =>
      expect((await person.send('GET', '/api/wallets')).body.balances).toContainEqual(
        expect.objectContaining({ token: 'USDC', amount: '50' }),
      ),
    { timeout: 40_000, interval: 500 },
  )
  return { person, apiKey: z.string().parse(body.key) }
}
