/**
 * The sandbox's own furniture: secrets that it makes for itself, a demo account with an API key, a funded x402 payer, and a
 * chain that is brought up to the ledger. Part of the runtime; production never comes here.
 */
import { generateKeyPair, generateKeyPairSync } from 'node:crypto'
import { promisify } from 'node:util'
import { privateKeyToAccount } from 'viem/accounts'
import type { Policy } from '../policies/policy.ts'
import type { Scope } from '../policies/scopes.ts'
import { openVirtualAccount, orderVirtualAccount } from './banking/open-account.ts'
import type { Clock } from './base/clock.ts'
import { type NewId, randomToken } from './base/ids.ts'
import type { Log } from './base/log.ts'
import { type IssueParts, issueCard, newCard } from './cards/issue-card.ts'
import { orderCard } from './cards/order-card.ts'
import { createAccount } from './identity/accounts.ts'
import { policyHashOf } from './identity/keys/agent-keys.ts'
import { hashApiKey, newApiKey } from './identity/keys/api-keys.ts'
import { findKey, insertKey } from './identity/store.ts'
import { openPortfolio } from './investing/open-portfolio.ts'
import type { SandboxCredentials } from './kernel/context.ts'
import type { BankingProvider } from './providers/banking.ts'
import type { Broker } from './providers/broker.ts'
import type { CardProcessor } from './providers/card-processor.ts'
import type { Chain, Hex } from './providers/chain.ts'
import type { Connection, Database } from './storage/database.ts'
import { bookDeposit, demoFunds, openWallet } from './wallets/open-wallet.ts'
import { adoptChain, findCursor, headOf } from './wallets/reconcile/chain-cursor.ts'
import { levelChain } from './wallets/reconcile/level-chain.ts'

/** What the sandbox needs to prepare itself. */
interface SandboxParts {
  readonly database: Database
  readonly chain: Chain
  readonly broker: Broker
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
  readonly cardProcessor: Pick<CardProcessor, 'issue'>
  readonly journal: IssueParts['journal']
  readonly bankingProvider: Pick<BankingProvider, 'open'>
  readonly webhooks: WebhookSecrets
}

/** By what the sandbox's providers sign their webhooks: `whsec_` and base64 for cards, PKCS #8 PEM for the bank. */
type WebhookSecrets = Pick<SandboxCredentials, 'lithicWebhookSecret' | 'bridgeWebhookPrivateKey'>

/** The name of the secret that the demo account's key is. */
const DEMO_API_KEY = 'demo-api-key'

/** 1,000 USDC: enough for a hundred thousand quotes. */
const PAYER_UNITS = 1_000_000_000n
/** 1 ETH, for clients that pay their own gas. */
const PAYER_WEI = 10n ** 18n

const demoScopes: readonly Scope[] = [
  'wallets:read',
  'wallets:transfer',
  'investing:read',
  'investing:trade',
  'swaps:quote',
  'cards:read',
  'cards:write',
  'banking:read',
  'banking:write',
  'compliance:write',
  'fx:pay',
]

const demoPolicy: Policy = {
  currency: 'USD',
  perTransaction: { max: '25' },
  dailyBudget: { max: '100' },
  categories: { allow: ['transfer', 'card', 'invest', 'x402'] },
}

/** Prepares the sandbox and keeps its chain level with the ledger, now and after every loss. */
export async function prepareSandbox(parts: SandboxParts): Promise<SandboxCredentials> {
  const { database, chain } = parts
  const demoApiKey = await sandboxSecret(database, DEMO_API_KEY, () => newApiKey('sandbox'))
  const payerKey: Hex = `0x${Buffer.from(await sandboxSecret(database, 'x402-payer'), 'base64url').toString('hex')}`
  const payer = { address: privateKeyToAccount(payerKey).address, privateKey: payerKey }
  await furnishDemoAccount(parts, demoApiKey)
  const bringUp = async () => {
    await Promise.all([bringChainUp(parts), fundPayer(chain, payer.address)])
  }
  chain.onReset(bringUp)
  await bringUp()
  return { demoApiKey, payer, ...parts.webhooks }
}

/** A secret of this sandbox, made once and shared by every process on its database. @returns 32 random bytes as base64url by default. */
export async function sandboxSecret(
  database: Connection,
  name: string,
  make: () => string | Promise<string> = () => randomToken(32),
): Promise<string> {
  const kept = database.kysely.selectFrom('sandbox_secret').select('value').where('name', '=', name)
  const known = await kept.executeTakeFirst()
  if (known !== undefined) return known.value
  await database.kysely
    .insertInto('sandbox_secret')
    .values({ name, value: await make() })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return (await kept.executeTakeFirstOrThrow()).value
}

/** What the sandbox's providers sign their webhooks by, made once. */
export async function sandboxWebhookSecrets(database: Connection): Promise<WebhookSecrets> {
  const newSecret = () => `whsec_${Buffer.from(randomToken(32), 'base64url').toString('base64')}`
  const [lithicWebhookSecret, bridgeWebhookPrivateKey] = await Promise.all([
    sandboxSecret(database, 'lithic-webhook', newSecret),
    sandboxSecret(database, 'bridge-webhook', newRsaKey),
  ])
  return { lithicWebhookSecret, bridgeWebhookPrivateKey }
}

/** @returns a private key as PKCS #8 PEM. Made off the main thread: it takes a third of a second. */
async function newRsaKey(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { format: 'pem', type: 'spki' },
    privateKeyEncoding: { format: 'pem', type: 'pkcs8' },
  })
  return privateKey
}

/** Where the sandbox's identity provider is served, below the gateway's origin. */
export const SANDBOX_OPENID_PATH = '/sandbox/openid'

/** How the sandbox's identity provider knows us as one that the configuration names, such as `google`. */
export function sandboxClientId(name: string): string {
  return `bursar-${name}`
}

/** The secret that we are a client of the sandbox's identity provider by. */
export function sandboxClientSecret(database: Connection): Promise<string> {
  return sandboxSecret(database, 'openid-client-secret')
}

/** What the sandbox's identity provider shares with its like on the same database. @property signingKey a private JWK, Ed25519. */
export async function sandboxOpenIdSecrets(
  database: Connection,
): Promise<{ clientSecret: string; cookieKey: string; signingKey: Readonly<Record<string, unknown>> }> {
  const newKey = () => JSON.stringify(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }))
  const signingKey: unknown = JSON.parse(await sandboxSecret(database, 'openid-signing-key', newKey))
  return {
    clientSecret: await sandboxClientSecret(database),
    cookieKey: await sandboxSecret(database, 'openid-cookie-key'),
    signingKey: { ...(typeof signingKey === 'object' ? signingKey : null) },
  }
}

async function furnishDemoAccount(parts: SandboxParts, demoApiKey: string): Promise<void> {
  const { database, newId, clock, log } = parts
  const secretHash = hashApiKey(demoApiKey)
  if ((await findKey(database, { secretHash })) !== undefined) return
  const at = clock()
  const { card, bank } = await database.transaction(async (connection) => {
    const account = await createAccount(
      { database: connection, newId },
      { displayName: 'Demo', guest: true, at },
    )
    const keyId = newId('key', at)
    await insertKey(connection, account.id, {
      id: keyId,
      kind: 'developer',
      name: 'Demo key',
      thumbprint: null,
      publicKey: null,
      secretHash,
      scopes: demoScopes,
      status: 'active',
      policy: demoPolicy,
      policyVersion: 1,
      policyHash: policyHashOf(demoPolicy),
      createdAt: at,
      expiresAt: null,
    })
    const address = await openWallet({ ...parts, database: connection }, { accountId: account.id, at })
    await bookDeposit(
      { ...parts, database: connection },
      { accountId: account.id, funds: demoFunds, reference: account.id, at },
    )
    await openPortfolio({ ...parts, database: connection }, { accountId: account.id, at })
    const wanted = { ...newCard, accountId: account.id, keyId, cardholderName: account.displayName }
    const settings = { mode: 'sandbox', accountsPerCurrency: 1 } as const
    const destination = { token: 'USDC', chain: parts.chain.name, address } as const
    return {
      card: await orderCard({ ...parts, database: connection }, { wanted, call: null, at }),
      bank: await orderVirtualAccount(
        { ...parts, settings, database: connection },
        { holder: account, currency: 'USD', destination, at },
      ),
    }
  })
  const later = (err: unknown) => log.warn({ err }, 'the demo account is not furnished yet')
  await issueCard(parts, card).catch(later)
  await openVirtualAccount(parts, bank).catch(later)
}

/** One process at a time: two that share a chain would each mint what it lacks. */
async function bringChainUp({ database, chain, clock, log }: SandboxParts): Promise<void> {
  const short = await database.transaction(async (connection) => {
    await connection.kysely
      .selectFrom('sandbox_secret')
      .select('name')
      .where('name', '=', DEMO_API_KEY)
      .forUpdate()
      .execute()
    // A chain that was level before has only what its wallets' owners left there: what they moved away is theirs.
    const cursor = await findCursor(connection, chain)
    if (cursor?.identity === (await chain.identity())) return 0
    const lacking = await levelChain({ database: connection, chain })
    await adoptChain(connection, chain, { ...(await headOf(chain)), at: clock() })
    return lacking
  })
  if (short > 0) log.info({ balances: short }, 'the chain was brought up to the ledger')
}

async function fundPayer(chain: Chain, address: Hex): Promise<void> {
  const there = await chain.balanceOf('USDC', address)
  if (there < PAYER_UNITS / 2n) await chain.mint([{ token: 'USDC', to: address, units: PAYER_UNITS - there }])
  await chain.fundGas(address, PAYER_WEI)
}
