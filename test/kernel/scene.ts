/** A gateway's services without its transports: a real database, the chain in memory, a fixed clock. */
import { generateKeyPairSync } from 'node:crypto'
import { defaultAmlLimits } from '../../policies/aml/limits.ts'
import { screenSandboxSuffix } from '../../policies/aml/sandbox-suffix.ts'
import { defaultKycLimits } from '../../policies/kyc.ts'
import { authenticatedReserve, createDecisionAuthenticator } from '../../src/books/spending/authenticate.ts'
import { createReserveQueue } from '../../src/books/spending/reserve-queue.ts'
import { createSimulatedChain } from '../../src/chain/simulated/simulated.ts'
import { newId } from '../../src/core/base/ids.ts'
import { silentLog } from '../../src/core/base/log.ts'
import type { AccessKey, Account, Principal } from '../../src/core/base/principal.ts'
import { rotatingKeys } from '../../src/core/base/rotating-key.ts'
import { createAskOwner } from '../../src/kernel/ask-owner.ts'
import type { Context, Services, Settings } from '../../src/kernel/context.ts'
import { createRunApproved } from '../../src/kernel/run-approved.ts'
import { createScheduling } from '../../src/kernel/scheduling.ts'
import { createAccount } from '../../src/people/identity/accounts.ts'
import { createSandboxBanking } from '../../src/providers/banking/sandbox.ts'
import { createSandboxBroker } from '../../src/providers/broker/sandbox.ts'
import { createSandboxProcessor } from '../../src/providers/card-processor/sandbox.ts'
import { createChains } from '../../src/providers/chain/chains.ts'
import { createConfiguredChats } from '../../src/providers/chats/configured.ts'
import { createSandboxReview } from '../../src/providers/identity-review/sandbox.ts'
import { createOutboxMessages } from '../../src/providers/messages/outbox.ts'
import { noMetrics } from '../../src/providers/metrics/port.ts'
import { fetchPublic } from '../../src/providers/public-fetch.ts'
import { createWebPush } from '../../src/providers/push/web-push.ts'
import { createDatabaseRailControls } from '../../src/providers/rail-controls/database.ts'
import { createMemoryRateLimiter } from '../../src/providers/rate-limiter/memory.ts'
import { createSnapshotRates } from '../../src/providers/rates/sandbox.ts'
import { createOfacExcerpt } from '../../src/providers/sanctions/ofac-excerpt.ts'
import { createSandboxScreening } from '../../src/providers/screening/sandbox.ts'
import { createSandboxAggregators } from '../../src/providers/swap-aggregator/sandbox.ts'
import { noTracing } from '../../src/providers/tracing/port.ts'
import { createSandboxTravelRule } from '../../src/providers/travel-rule-network/sandbox.ts'
import { hasSigner } from '../../src/rails/wallets/signing/signer-store.ts'
import { deriveSigningKey } from '../../src/records/decisions/signing-key.ts'
import { createEventWatches } from '../../src/records/events/watch-events.ts'
import { createJournal } from '../../src/records/journal/write.ts'
import type { Database } from '../../src/storage/database.ts'

const bankKey = generateKeyPairSync('ed25519').privateKey

/** The time of the tests. */
export const noon = new Date('2026-11-20T12:00:00.000Z')

/** The origin of the tests' gateway. */
export const origin = 'https://bursar.example'

const dataKey = Buffer.from('a data key of thirty-two letters')

/** Settings of a sandbox. */
export const sandboxSettings: Settings = {
  mode: 'sandbox',
  origin,
  fxPrice: { asset: 'USDC', units: 10_000n },
  x402PayTo: '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f',
  trustedProxies: [],
  rateLimits: new Map([['mutations', { count: 3, seconds: 60 }]]),
  sessionKey: Buffer.from('a secret of thirty-two characters'),
  previousSessionKeys: [],
  dataKey,
  receiptKey: await deriveSigningKey(dataKey),
  accessTokenKey: { current: rotatingKeys.ACCESS_TOKEN_KEY.derive(dataKey), previous: null },
  rpId: 'bursar.example',
  webOrigins: [origin],
  founderAccount: null,
  guests: true,
  aml: defaultAmlLimits,
  kycLimits: defaultKycLimits.sandbox,
  vasp: { name: 'Bursar', lei: null },
  cardTreasury: '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720',
  anchorChain: null,
  cardSpreadBps: 50,
  cardFloatMicros: 50_000_000n,
  cardPullMs: 2_500,
  channels: { maxWithdrawDelay: 86_400, depositMax: 1_000_000n, idleMs: 3_600_000 },
  accountsPerCurrency: 1,
  metricsToken: null,
  eventDays: 90,
  answerRoomBytes: 256 * 1024 * 1024,
}

/** Services over a database. @param changes replaces parts of a sandbox. */
export async function servicesOn(database: Database, changes: Partial<Services> = {}): Promise<Services> {
  const clock = () => noon
  const unstoredCodes = new Map<string, string>()
  const chain = changes.chain ?? (await createSimulatedChain({ clock, log: silentLog }))
  return {
    settings: sandboxSettings,
    database,
    reserve: authenticatedReserve(createReserveQueue(database), {
      database,
      dataKey,
      log: silentLog,
      unstoredCodes,
    }),
    vouch: createDecisionAuthenticator({ dataKey, log: silentLog, unstoredCodes }),
    unstoredCodes,
    journal: createJournal({ dataKey, newId }),
    chain,
    chains: createChains([chain]).chains,
    broker: createSandboxBroker({ database, clock, hours: 'always' }),
    swapAggregators: createSandboxAggregators(),
    attester: null,
    namedRoutes: [],
    rates: createSnapshotRates(),
    railControls: createDatabaseRailControls({ database, defaultEnabled: true }),
    sanctions: createOfacExcerpt(),
    identityReview: createSandboxReview(clock),
    screening: createSandboxScreening(screenSandboxSuffix),
    travelRuleNetwork: createSandboxTravelRule(clock),
    cardProcessor: createSandboxProcessor({
      webhookUrl: () => origin,
      secretsAt: () => [],
      eventSecretsAt: () => [],
      dataKey,
      clock,
      newId,
    }),
    fetchPublic,
    webBotAuth: null,
    discovery: { list: async () => [] },
    chats: createConfiguredChats({ mode: 'sandbox', telegramUrl: 'http://127.0.0.1:9' }, fetchPublic),
    push: createWebPush({
      keys: { current: rotatingKeys.PUSH_KEY.derive(dataKey), previous: null },
      ...{ origin, mode: 'sandbox', publicFetch: fetchPublic, log: silentLog },
    }),
    bankingProvider: createSandboxBanking({
      webhookUrl: () => origin,
      key: bankKey,
      rates: createSnapshotRates(),
      clock,
      newId,
    }),
    rateLimiter: createMemoryRateLimiter(),
    eventWatches: createEventWatches(database),
    messages: createOutboxMessages({ database, newId }),
    identityProviders: new Map(),
    clock,
    newId,
    log: silentLog,
    metrics: noMetrics,
    tracing: noTracing,
    sandbox: null,
    runApproved: createRunApproved(() => undefined),
    askOwner: createAskOwner([]),
    scheduling: createScheduling([]),
    onCalendar: (at) => at,
    advanceCalendar: null,
    hasSigner,
    ...changes,
  }
}

/** One call's context. @param changes such as its idempotency key. */
export function buildCall(
  services: Services,
  principal: Principal,
  changes: Partial<Context> = {},
): Omit<Context, 'afterCommit'> {
  const chains = changes.chain === undefined ? services.chains : createChains([changes.chain]).chains
  return {
    ...services,
    chains,
    principal,
    requestId: 'req_test',
    now: noon,
    idempotencyKey: null,
    ...changes,
  }
}

export async function newPerson(database: Database): Promise<Extract<Principal, { kind: 'session' }>> {
  const account = await createAccount({ database, newId }, { displayName: 'Ada', guest: false, at: noon })
  const session = {
    id: newId('sess', noon),
    createdAt: noon,
    isDevice: false,
    steppedUpAt: null,
    tokenHolder: 'client' as const,
    tokenExpiresAt: new Date(noon.getTime() + 15 * 60_000),
    expiresAt: new Date(noon.getTime() + 12 * 60 * 60_000),
  }
  const person = { id: account.id, status: account.status, role: 'owner' as const }
  return { kind: 'session', account, person, session }
}

/** A key of an account, as authentication returns it. */
export function buildKeyPrincipal(
  account: Account,
  changes: Partial<AccessKey> = {},
): Extract<Principal, { kind: 'key' }> {
  const key: AccessKey = {
    id: newId('key', noon),
    kind: 'agent',
    name: 'Invoice bot',
    thumbprint: null,
    publicKey: null,
    scopes: [],
    status: 'active',
    policy: null,
    policyVersion: 1,
    policyHash: null,
    createdAt: noon,
    expiresAt: null,
    ...changes,
  }
  return { kind: 'key', account, key }
}

/** A seller without goods, for callers that do not pay by x402. */
export const nothingForSale = {
  sell: () => Promise.reject(new Error('nothing is for sale')),
  recall: async () => null,
}
