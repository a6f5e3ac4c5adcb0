/**
 * Prepares the sandbox: generated secrets, a demo account with an API key, a funded x402 payer, and chains that
 * match the ledger. Part of the runtime; never used in production.
 */
import { privateKeyToAccount } from 'viem/accounts'
import type { Policy } from '../../policies/policy.ts'
import type { Scope } from '../../policies/scopes.ts'
import type { Clock } from '../core/base/clock.ts'
import { type NewId, randomToken } from '../core/base/ids.ts'
import type { Log } from '../core/base/log.ts'
import { random } from '../core/base/random.ts'
import type { SandboxCredentials } from '../kernel/context.ts'
import { createAccount } from '../people/identity/accounts.ts'
import { hashPolicy } from '../people/identity/keys/agent-keys.ts'
import { hashApiKey, newApiKey } from '../people/identity/keys/api-keys.ts'
import { findKey, insertKey } from '../people/identity/store.ts'
import type { BankingProvider } from '../providers/banking/port.ts'
import type { Broker } from '../providers/broker/port.ts'
import type { CardProcessor } from '../providers/card-processor/port.ts'
import type { Chains } from '../providers/chain/chains.ts'
import type { Chain, Hex } from '../providers/chain/port.ts'
import { openVirtualAccount, orderVirtualAccount } from '../rails/banking/open-account.ts'
import { endLostChannels } from '../rails/buying/channels/close-channel.ts'
import { levelPurses } from '../rails/buying/purse-books.ts'
import { demoCard, type IssueParts, issueCard } from '../rails/cards/issue-card.ts'
import { orderCard } from '../rails/cards/order-card.ts'
import { openPortfolio } from '../rails/investing/open-portfolio.ts'
import { levelEscrows } from '../rails/wallets/escrow/escrow-books.ts'
import { bookDeposit, demoFunds, openWallet } from '../rails/wallets/open-wallet.ts'
import { adoptChain, findCursor, readHead } from '../rails/wallets/reconcile/chain-cursor.ts'
import { levelChain } from '../rails/wallets/reconcile/level-chain.ts'
import type { Connection, Database } from '../storage/database.ts'

interface SandboxParts {
  readonly database: Database
  readonly chain: Chain
  readonly chains: Chains
  readonly broker: Broker
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
  readonly cardProcessor: Pick<CardProcessor, 'issue'>
  readonly journal: IssueParts['journal']
  readonly bankingProvider: Pick<BankingProvider, 'open'>
  readonly webhooks: WebhookSecrets
}

/** Webhook signing secrets of the sandbox's providers: `whsec_` and base64 for cards, PKCS #8 PEM for banking. */
type WebhookSecrets = Pick<SandboxCredentials, 'lithicWebhookSecret' | 'bridgeWebhookPrivateKey'>

const DEMO_API_KEY = 'demo-api-key'

/** 1,000 USDC, enough for 100,000 quotes. */
const PAYER_UNITS = 1_000_000_000n
/** 1 ETH, for clients that pay their own gas. */
const PAYER_WEI = 10n ** 18n

/** Scopes of the demo key. */
export const demoScopes: readonly Scope[] = [
  'wallets:read',
  'wallets:transfer',
  'investing:read',
  'investing:trade',
  'swaps:quote',
  'swaps:execute',
  'cards:read',
  'cards:write',
  'cards:pay',
  'banking:read',
  'banking:write',
  'banking:pay',
  'compliance:write',
  'fx:pay',
  'purchases:pay',
  'events:read',
  'agents:delegate',
  'requests:create',
  'requests:read',
]

const demoPolicy: Policy = {
  currency: 'USD',
  perTransaction: { max: '25' },
  dailyBudget: { max: '100' },
  categories: { allow: ['transfer', 'card', 'invest', 'swap', 'x402'] },
}

/** Prepares the sandbox, and restores chain balances from the ledger now and after every chain reset. */
export async function prepareSandbox(parts: SandboxParts): Promise<SandboxCredentials> {
  const { database, chains } = parts
  const demoApiKey = await sandboxSecret(database, DEMO_API_KEY, () => newApiKey('sandbox'))
  const payerKey: Hex = `0x${Buffer.from(await sandboxSecret(database, 'x402-payer'), 'base64url').toString('hex')}`
  const payer = { address: privateKeyToAccount(payerKey).address, privateKey: payerKey }
  await prepareDemoAccount(parts, demoApiKey)
  for (const chain of chains.all) {
    const restoreChain = async () => {
      await Promise.all([restoreChainBalances({ ...parts, chain }), fundPayer(chain, payer.address)])
    }
    chain.onReset(restoreChain)
    await restoreChain()
  }
  return { demoApiKey, payer, ...parts.webhooks }
}

/**
 * A secret that is created once and shared by all processes on the database. @returns 32 random bytes as base64url by
 * default.
 */
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

export async function sandboxWebhookSecrets(database: Connection): Promise<WebhookSecrets> {
  const newSecret = () => `whsec_${Buffer.from(randomToken(32), 'base64url').toString('base64')}`
  const [lithicWebhookSecret, bridgeWebhookPrivateKey] = await Promise.all([
    sandboxSecret(database, 'lithic-webhook', newSecret),
    sandboxSecret(database, 'bridge-webhook', newRsaKey),
  ])
  return { lithicWebhookSecret, bridgeWebhookPrivateKey }
}

/** @returns a private key as PKCS #8 PEM. */
async function newRsaKey(): Promise<string> {
  const key = await random.rsaKey(2048)
  return key.export({ format: 'pem', type: 'pkcs8' }).toString()
}

/** Path of the sandbox's identity provider. */
export const SANDBOX_OPENID_PATH = '/sandbox/openid'

/** Our client id at the sandbox's identity provider. @param name configured provider, such as `google`. */
export function sandboxClientId(name: string): string {
  return `bursar-${name}`
}

/** Our client secret at the sandbox's identity provider. */
export function sandboxClientSecret(database: Connection): Promise<string> {
  return sandboxSecret(database, 'openid-client-secret')
}

/**
 * Secrets of the sandbox's identity provider, shared by all processes on the database. @property signingKey a private
 * Ed25519 JWK.
 */
export async function sandboxOpenIdSecrets(
  database: Connection,
): Promise<{ clientSecret: string; cookieKey: string; signingKey: Readonly<Record<string, unknown>> }> {
  const newKey = () => JSON.stringify(random.ed25519Key().export({ format: 'jwk' }))
  const signingKey: unknown = JSON.parse(await sandboxSecret(database, 'openid-signing-key', newKey))
  return {
    clientSecret: await sandboxClientSecret(database),
    cookieKey: await sandboxSecret(database, 'openid-cookie-key'),
    signingKey: { ...(typeof signingKey === 'object' ? signingKey : null) },
  }
}

async function prepareDemoAccount(parts: SandboxParts, demoApiKey: string): Promise<void> {
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
      policyHash: hashPolicy(demoPolicy),
      createdAt: at,
      expiresAt: null,
    })
    const address = await openWallet({ ...parts, database: connection }, { accountId: account.id, at })
    await bookDeposit(
      { ...parts, database: connection },
      { accountId: account.id, funds: demoFunds, reference: account.id, at },
    )
    await openPortfolio({ ...parts, database: connection }, { accountId: account.id, at })
    const wanted = { ...demoCard, accountId: account.id, keyId, cardholderName: account.displayName }
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
  const logFailure = (err: unknown) => log.warn({ err }, 'preparing the demo account failed')
  await issueCard(parts, card).catch(logFailure)
  await openVirtualAccount(parts, bank).catch(logFailure)
}

/** Runs in one process at a time: two that share a chain would both mint the same shortfall. */
async function restoreChainBalances({ database, chain, chains, clock, log }: SandboxParts): Promise<void> {
  const minted = await database.transaction(async (connection) => {
    await connection.kysely
      .selectFrom('sandbox_secret')
      .select('name')
      .where('name', '=', DEMO_API_KEY)
      .forUpdate()
      .execute()
    // On a known chain, differences come from wallet owners' own transfers, so nothing is minted.
    const cursor = await findCursor(connection, chain)
    if (cursor?.identity === (await chain.identity())) return 0
    const parts = { database: connection, chain }
    // Channels are on the default chain only.
    if (chain.name === chains.all[0].name) await endLostChannels(connection, clock())
    const purses = (await levelPurses(parts)) + (await levelEscrows(parts))
    const shortfalls = (await levelChain(parts)) + purses
    await adoptChain(connection, chain, { ...(await readHead(chain)), at: clock() })
    return shortfalls
  })
  if (minted > 0) log.info({ chain: chain.name, balances: minted }, 'minted missing chain balances')
}

async function fundPayer(chain: Chain, address: Hex): Promise<void> {
  const balance = await chain.readBalance('USDC', address)
  if (balance < PAYER_UNITS / 2n)
    await chain.mint([{ token: 'USDC', to: address, units: PAYER_UNITS - balance }])
  await chain.fundGas(address, PAYER_WEI)
}
