/** A card with an owner, money and a simulated processor, for tests of card decisions. */
import { defaultKycLimits } from '../../../policies/kyc.ts'
import { type Policy, spendPolicy } from '../../../policies/policy.ts'
import { available, external } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { createDecisionAuthenticator } from '../../../src/books/spending/authenticate.ts'
import { type Coverage, pullParameters } from '../../../src/books/spending/coverage.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { allowancePrices, allowanceValue } from '../../../src/chain/accounts/wallets.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { canonicalJson } from '../../../src/core/base/json.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import {
  type Asset,
  type Stablecoin,
  stablecoins,
  toDecimal,
  toMoney,
} from '../../../src/core/money/money.ts'
import { parsePolicy } from '../../../src/kernel/gates/policy.ts'
import type { CardAuthorization, CardTransaction } from '../../../src/providers/card-processor/port.ts'
import { createDatabaseRailControls } from '../../../src/providers/rail-controls/database.ts'
import { createSnapshotRates } from '../../../src/providers/rates/sandbox.ts'
import {
  applyTransaction,
  type CardTransactionDependencies,
} from '../../../src/rails/cards/apply-transaction.ts'
import {
  authorizeCard,
  type CardAuthorizationDependencies,
  createKnownCards,
} from '../../../src/rails/cards/authorize.ts'
import { demoCard } from '../../../src/rails/cards/issue-card.ts'
import {
  endSettlements,
  type SettlementParts,
  unsentSettlements,
} from '../../../src/rails/cards/settlements.ts'
import { type Card, insertCard } from '../../../src/rails/cards/store.ts'
import { transferOwnership } from '../../../src/rails/wallets/signing/signer-store.ts'
import { parseStablecoin } from '../../../src/rails/wallets/store.ts'
import type { Database } from '../../../src/storage/database.ts'

export const noon = new Date('2026-11-20T12:00:00.000Z')
const chain = { name: 'base-sepolia' }

export const dataKey = Buffer.from('a data key of thirty-two letters')

/** Authenticates decisions like a process does. */
export const authenticateDecision = createDecisionAuthenticator({
  dataKey,
  log: silentLog,
  unstoredCodes: new Map(),
})

/** Dependencies of a decision, over a real database. */
export function cardDependencies(
  database: Database,
  changes: Partial<Omit<CardAuthorizationDependencies, 'settings'>> = {},
): CardAuthorizationDependencies & CardTransactionDependencies & SettlementParts {
  return {
    database,
    chains: { all: [chain] },
    rates: createSnapshotRates(),
    railControls: createDatabaseRailControls({ database, defaultEnabled: true }),
    parsePolicy,
    onCalendar: (at: Date) => at,
    newId,
    clock: () => noon,
    log: silentLog,
    settings: {
      mode: 'sandbox',
      kycLimits: defaultKycLimits.sandbox,
      dataKey,
      cardSpreadBps: 0,
      cardFloatMicros: 50_000_000n,
      cardPullMs: 2_500,
    },
    vouch: authenticateDecision,
    readCoverages: async () => [],
    knownCards: createKnownCards(),
    pull: pulling(database),
    ...changes,
  }
}

const owners = {
  gateway: { kind: 'gateway' },
  passkey: { kind: 'passkey', x: '0x01', y: '0x02' },
} as const

/** Gives an owner's wallet to a passkey, as registering one does. @throws Failure `wallet_busy`. */
export function give(database: Database, accountId: string): Promise<void> {
  return transferOwnership(database, accountId, owners.passkey)
}

/**
 * A chain that moves what is pulled to the escrow at once, as far as the cards' allowance goes. @param left of the
 * allowance, such as `200`. @returns the `pull` of a decision.
 */
export function pulling(database: Database, left = '1000000'): CardAuthorizationDependencies['pull'] {
  let micros = toMoney('USDC', left).units
  return async ({ accountId, token, pulls, coverages }) => {
    let isPulled = true
    for (const { place, asset, units } of pulls) {
      const [before, since, tokens, prices] = pullParameters(
        coverages.find((coverage) => coverage.place === place) ?? null,
      )
      const decisionId = newId('dec', noon)
      const begun = await database.call<{ units: bigint | null }>(
        {
          name: 'test_pull',
          text: 'select card_pull_begin($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) as units',
        },
        [decisionId, accountId, token, place, asset, units, noon, before, since, tokens, prices],
      )
      if (begun[0]?.units === null) return false
      const worth = allowanceValue(parseStablecoin(asset), BigInt(units))
      const isRefused = worth > micros
      if (!isRefused) micros -= worth
      await endPull(database, decisionId, !isRefused)
      isPulled &&= !isRefused
    }
    return isPulled
  }
}

/** Pulls what approved purchases hold of a token in a wallet. @returns the pull's decision; null where nothing is held. */
export async function beginPull(
  database: Database,
  accountId: string,
  asset: Stablecoin = 'USDC',
): Promise<string | null> {
  const decisionId = newId('dec', noon)
  const rows = await database.call<{ units: bigint | null }>(
    { name: 'test_pull_holds', text: 'select card_pull_begin($1, $2, $3, $4, $5, $6, $7) as units' },
    [decisionId, accountId, null, chain.name, asset, null, noon],
  )
  return rows[0]?.units == null ? null : decisionId
}

/** Pulls what approved purchases hold in a wallet, and lets the chain confirm it. */
export async function pullHolds(database: Database, accountId: string): Promise<void> {
  for (const asset of stablecoins) {
    const decisionId = await beginPull(database, accountId, asset)
    if (decisionId !== null) await endPull(database, decisionId)
  }
}

/** The chain's decision on a pull. */
export async function endPull(database: Database, decisionId: string, isConfirmed = true): Promise<void> {
  await database.call({ name: 'test_pull_end', text: 'select verdict from card_pull_end($1, $2, $3)' }, [
    ...[decisionId, isConfirmed, noon],
  ])
}

/** A chain's view of an owner's wallet. @param left of the allowance, such as `1000`. @param place the chain. */
export async function buildCoverage(
  database: Database,
  accountId: string,
  {
    left,
    onChain,
    place = chain.name,
  }: { left: string; onChain?: Partial<Record<Stablecoin, string>>; place?: string },
): Promise<Coverage> {
  const booked = (await balances(database, accountId)).filter((balance) => balance.place === place)
  return {
    leftMicros: toMoney('USDC', left).units,
    since: noon,
    place,
    tokens: stablecoins.map((token) => {
      const row = booked.find(({ asset }) => asset === token)
      const units = (row?.available ?? 0n) + (row?.held ?? 0n)
      const said = onChain?.[token]
      return {
        token,
        price: allowancePrices[token],
        onChain: said === undefined ? units : toMoney(token, said).units,
        booked: units,
      }
    }),
  }
}

/** A new owner with a gateway-signed wallet and this money, such as `{ USDC: '100' }`. */
export async function newOwner(
  database: Database,
  funds: Partial<Record<Asset, string>>,
  walletOwner: 'gateway' | 'passkey' = 'gateway',
): Promise<string> {
  const id = newId('acct', noon)
  await database.kysely.insertInto('account').values({ id, display_name: 'Ada', created_at: noon }).execute()
  await database.call(
    {
      name: 'test_wallet',
      text: 'insert into wallet (account_id, address, chain, created_at, owner) values ($1, $2, $3, $4, $5)',
    },
    [id, `0x${id}`, chain.name, noon, JSON.stringify(owners[walletOwner])],
  )
  await fund(database, id, funds)
  return id
}

/** Adds external money: dollars at the bank, stablecoins on the chain. */
export async function fund(
  database: Database,
  accountId: string,
  funds: Partial<Record<Asset, string>>,
): Promise<void> {
  for (const asset of ['USDC', 'USDT', 'EURC', 'PYUSD', 'USD'] as const) {
    const amount = funds[asset]
    if (amount === undefined) continue
    const place = asset === 'USD' ? 'bank' : chain.name
    await post(database, {
      id: newId('tx', noon),
      kind: 'deposit',
      reference: 'test',
      at: noon,
      postings: [
        { source: external(place), destination: available(accountId, place), money: toMoney(asset, amount) },
      ],
    })
  }
}

export async function issueCard(
  database: Database,
  accountId: string,
  controls: Partial<Card> = {},
): Promise<Card> {
  const id = newId('card', noon)
  return insertCard(database, {
    ...demoCard,
    id,
    accountId,
    keyId: null,
    type: 'virtual',
    cardholderName: 'Ada',
    createdAt: noon,
    ...controls,
    issued: { token: id, brand: 'Visa', last4: '4242', expMonth: 11, expYear: 2030 },
  })
}

export async function newKey(
  database: Database,
  accountId: string,
  policy: Record<string, unknown> = {},
): Promise<string> {
  const id = newId('key', noon)
  const document: Policy = spendPolicy.parse({
    perTransaction: { max: '50' },
    dailyBudget: { max: '100' },
    categories: { allow: ['card'] },
    ...policy,
  })
  await database.kysely
    .insertInto('access_key')
    .values({
      id,
      account_id: accountId,
      kind: 'agent',
      name: 'agent',
      scopes: [],
      policy: JSON.stringify(document),
      policy_hash: 'hash',
      created_at: noon,
    })
    .execute()
  return id
}

/** A request for a decision. @param dollars such as `12.50`. */
export function buildPurchase(
  card: Card,
  dollars: string,
  changes: Partial<CardAuthorization> = {},
): CardAuthorization {
  const request = {
    kind: 'authorization',
    token: newId('evt', noon),
    eventToken: null,
    cardToken: card.token,
    type: 'purchase',
    units: toMoney('USD', dollars).units,
    merchant: { id: 'SHOP', name: 'Corner Shop', mcc: '5411', country: 'USA' },
    channel: 'ecommerce',
    allowsPartial: false,
    ...changes,
  } as const
  return { ...request, fingerprint: '' }
}

/** The adapter's fingerprint: over every member of a request. */
function buildFingerprint(request: object): string {
  return canonicalJson({ ...request, fingerprint: null })
}

/** Decides as the webhook does, on the current request. */
export function decide(
  parts: CardAuthorizationDependencies,
  request: CardAuthorization,
  webhookId = newId('evt', noon),
  now = noon,
) {
  return authorizeCard(parts, { ...request, fingerprint: buildFingerprint(request) }, { webhookId, now })
}

/** Delivers a transaction's events. @param events such as `['clearing', '12.50']`, in order. */
export function applyCardEvents(
  parts: CardAuthorizationDependencies,
  { token, cardToken }: Pick<CardAuthorization, 'token' | 'cardToken'>,
  status: CardTransaction['status'],
  events: readonly (readonly [kind: CardTransaction['events'][number]['kind'], dollars: string])[],
  isTakenAsItIs = false,
) {
  return applyTransaction(
    parts,
    {
      kind: 'transaction',
      token,
      cardToken,
      status,
      merchantName: 'Corner Shop',
      wasAuthorized: true,
      events: events.map(([kind, dollars], index) => ({
        token: `${token}-${index}`,
        kind,
        units: toMoney('USD', dollars).units,
      })),
    },
    { isForcePosted: isTakenAsItIs },
  )
}

/** An owner's balances, as `USDC 87.5 + 12.5` (available + held). */
export async function listOwned(database: Database, accountId: string): Promise<readonly string[]> {
  const rows = await balances(database, accountId)
  return rows
    .filter(({ available, held }) => available + held > 0n)
    .map(
      ({ asset, available, held }) =>
        `${asset} ${toDecimal({ asset, units: available })} + ${toDecimal({ asset, units: held })}`,
    )
    .sort()
}

/** Lets the chain confirm every settlement of an owner. @returns the amounts sent to the treasury. */
export async function settleAll(database: Database, accountId: string): Promise<readonly string[]> {
  const unsent = (
    await unsentSettlements(cardDependencies(database), { chain: 'base-sepolia', at: noon, limit: 100 })
  ).filter((each) => each.accountId === accountId)
  for (const { decisionId } of unsent)
    await settleSpend(database, { decisionId, destination: external('base-sepolia'), at: noon })
  await endSettlements(database, noon)
  return unsent.map(({ token, units }) => `${token} ${units}`).sort()
}
