/** The context of a call: the process's services, the caller and the request. */
import type { AmlLimits } from '../../policies/aml/limits.ts'
import type { KycLimits } from '../../policies/kyc.ts'
import type { ApprovableOperation } from '../books/approvals/approvable-operations.ts'
import type { Approval } from '../books/approvals/approvals.ts'
import type { AuthenticateDecisions, UnstoredCodes } from '../books/spending/authenticate.ts'
import type { Reserve } from '../books/spending/reserve-queue.ts'
import type { Clock } from '../core/base/clock.ts'
import type { NewId } from '../core/base/ids.ts'
import type { Log } from '../core/base/log.ts'
import type { Account, AccountPrincipal, KnownBrowser, Principal } from '../core/base/principal.ts'
import type { RotatingKey } from '../core/base/rotating-key.ts'
import { Failure } from '../core/failures/failure.ts'
import type { ChainName } from '../core/money/chains.ts'
import type { Money } from '../core/money/money.ts'
import type { Attester } from '../providers/attester/port.ts'
import type { BankingProvider } from '../providers/banking/port.ts'
import type { Broker } from '../providers/broker/port.ts'
import type { CardProcessor } from '../providers/card-processor/port.ts'
import type { Chains } from '../providers/chain/chains.ts'
import type { Address, Chain, Hex } from '../providers/chain/port.ts'
import type { Chats } from '../providers/chats/port.ts'
import type { Discovery } from '../providers/discovery/port.ts'
import type { IdentityProvider } from '../providers/identity-provider/port.ts'
import type { IdentityReview } from '../providers/identity-review/port.ts'
import type { Messages } from '../providers/messages/port.ts'
import type { Metrics } from '../providers/metrics/port.ts'
import type { PublicFetch } from '../providers/public-fetch.ts'
import type { PushSender } from '../providers/push/port.ts'
import type { RailControls } from '../providers/rail-controls/port.ts'
import type { RateLimit, RateLimiter } from '../providers/rate-limiter/port.ts'
import type { Rates } from '../providers/rates/port.ts'
import type { Sanctions } from '../providers/sanctions/port.ts'
import type { AddressScreening } from '../providers/screening/port.ts'
import type { SwapAggregator } from '../providers/swap-aggregator/port.ts'
import type { Tracing } from '../providers/tracing/port.ts'
import type { TravelRuleNetwork } from '../providers/travel-rule-network/port.ts'
import type { WebBotAuth } from '../providers/web-bot-auth.ts'
import type { NamedPayee } from '../records/contacts/payee.ts'
import type { SigningKey } from '../records/decisions/signing-key.ts'
import type { EventWatches } from '../records/events/watch-events.ts'
import type { WriteJournal } from '../records/journal/write.ts'
import type { ScheduledOperation } from '../records/schedules/store.ts'
import type { Connection, Database } from '../storage/database.ts'

export interface Settings {
  readonly mode: 'sandbox' | 'production'
  /** Public origin. */
  readonly origin: string
  readonly fxPrice: Money
  readonly x402PayTo: Address
  readonly trustedProxies: readonly string[]
  /** Limits by class name, such as `mutations`. */
  readonly rateLimits: ReadonlyMap<string, RateLimit>
  /** Key of session tokens. */
  readonly sessionKey: Uint8Array
  /** Keys that session tokens are verified with too, during a rotation. */
  readonly previousSessionKeys: readonly Uint8Array[]
  /** Key that encrypts second factors and hashes addresses; without it, both are lost. */
  readonly dataKey: Uint8Array
  /** Signs receipts and evidence. */
  readonly receiptKey: SigningKey
  /** Signs access tokens of OAuth clients. */
  readonly accessTokenKey: RotatingKey
  /** The WebAuthn relying party: a registrable domain. */
  readonly rpId: string
  /** Origins of our pages, where passkeys and cookie sessions work. The first is the canonical one. */
  readonly webOrigins: readonly string[]
  /** The only administrator in production; null for none. */
  readonly founderAccount: string | null
  /** True if demo sessions are enabled. */
  readonly guests: boolean
  /** Limits of the AML rules. */
  readonly aml: AmlLimits
  readonly kycLimits: KycLimits
  /** Originating institution in Travel Rule data. */
  readonly vasp: { readonly name: string; readonly lei: string | null }
  /** Recipient of stablecoins spent by cards. */
  readonly cardTreasury: Address
  /** Basis points that a card's conversion between two currencies is below the reference rate. */
  readonly cardSpreadBps: number
  /** The most that an account's open purchases may promise of a wallet that its owner can empty, in millionths of a USD. */
  readonly cardFloatMicros: bigint
  /** How long a purchase waits until its money is in the escrow, in milliseconds. */
  readonly cardPullMs: number
  /** Maximum virtual accounts per owner and currency. */
  readonly accountsPerCurrency: number
  /** Bearer token of `/metrics`; null restricts production to loopback connections. */
  readonly metricsToken: string | null
  /** Limits of payment channels: see BuyingConfig. */
  readonly channels: {
    readonly maxWithdrawDelay: number
    readonly depositMax: bigint
    readonly idleMs: number
  }
  /** The chain on which each day's head of the decision chain is written; null: none. */
  readonly anchorChain: ChainName | null
  /** Days for which events and webhook deliveries are kept. */
  readonly eventDays: number
  /** What the stored answers of an account's purchases may take together. */
  readonly answerRoomBytes: number
}

/** Generated sandbox credentials, which are public. */
export interface SandboxCredentials {
  readonly demoApiKey: string
  /** Signs the card processor's webhooks: `whsec_` and base64. */
  readonly lithicWebhookSecret: string
  /** Signs the banking provider's webhooks: PKCS #8 PEM. */
  readonly bridgeWebhookPrivateKey: string
  /** Holds USDC on the sandbox chain. */
  readonly payer: { readonly address: Address; readonly privateKey: Hex }
}

/** The services of the process, assembled in src/runtime.ts. */
export interface Services {
  readonly settings: Settings
  readonly database: Database
  /**
   * Decides on spends and holds their money; concurrent spends of an account are batched. Never call it within a
   * transaction.
   */
  readonly reserve: Reserve
  /** Authenticates decisions made by database functions. */
  readonly vouch: AuthenticateDecisions
  readonly unstoredCodes: UnstoredCodes
  /** Writes journal entries within the transaction of the change. */
  readonly journal: WriteJournal
  /** The default chain, for calls without one. Bank deposits and payouts use no other. */
  readonly chain: Chain
  readonly chains: Chains
  readonly broker: Broker
  readonly swapAggregators: readonly SwapAggregator[]
  /** Attests what is burned on one chain to be minted on another; null: there is none. */
  readonly attester: Attester | null
  /** Routes that quotes take only by their name: those of the sandbox that lie. */
  readonly namedRoutes: readonly SwapAggregator[]
  readonly rates: Rates
  readonly railControls: RailControls
  readonly sanctions: Sanctions
  readonly identityReview: IdentityReview
  readonly screening: AddressScreening
  /** Null: no Travel Rule network is configured. */
  readonly travelRuleNetwork: TravelRuleNetwork | null
  readonly cardProcessor: CardProcessor
  readonly push: PushSender
  readonly chats: Chats
  /** Fetches URLs that strangers choose. */
  readonly fetchPublic: PublicFetch
  /** Null: sellers are not told who buys. */
  readonly webBotAuth: WebBotAuth | null
  readonly discovery: Discovery
  readonly bankingProvider: BankingProvider
  readonly rateLimiter: RateLimiter
  readonly messages: Messages
  readonly eventWatches: EventWatches
  /** Identity providers by their name in the route. */
  readonly identityProviders: ReadonlyMap<string, IdentityProvider>
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
  readonly metrics: Metrics
  readonly tracing: Tracing
  /** Null in production. */
  readonly sandbox: SandboxCredentials | null
  /** Runs a call that its owner has approved. */
  readonly runApproved: RunApproved
  /** Asks the owner for an exception to the policy. */
  readonly askOwner: AskOwner
  /** Calls that are made again and again. */
  readonly scheduling: Scheduling
  /**
   * Time of the calendar that schedules, budgets and approvals follow, at a moment of `clock`. The sandbox can set it ahead;
   * sign-in, signatures, codes, rate limits and chains follow `clock` alone.
   */
  readonly onCalendar: (at: Date) => Date
  /** Sets the calendar ahead, at a moment of `clock`; null in production. */
  readonly advanceCalendar: ((byMs: number, at: Date) => Promise<void>) | null
  /** True if a person's own key guards the account's money: a passkey, an EVM key, or the wallet's owner on chain. */
  readonly hasSigner: (database: Connection, accountId: string) => Promise<boolean>
}

/** Finds a key, revoked or not, and its owner's account as they are now. */
export type FindKey = (
  database: Connection,
  by: { id: string },
) => Promise<Omit<Extract<AccountPrincipal, { kind: 'key' }>, 'kind'>>

/**
 * Runs an approved call once and stores its outcome. Safe to repeat. A change is made by the person who approves it, so only in
 * their own call.
 * @throws Failure where the outcome is unknown: the call may be repeated.
 */
export type RunApproved = (
  context: Omit<Context, 'principal' | 'idempotencyKey' | 'afterCommit'> & { readonly principal?: Principal },
  approval: Approval,
  findKey: FindKey,
) => Promise<Approval>

/** A call that a key asks its owner for. @property reason untrusted text. */
export interface ExceptionRequest {
  readonly operation: ApprovableOperation
  readonly input: Readonly<Record<string, unknown>>
  readonly reason: string
}

/**
 * Requests the owner's approval of exactly one call, although the policy denies it.
 * @throws Failure `invalid_request`, `insufficient_scope`, `conflict`, and what no approval overrules.
 */
export type AskOwner = (context: Context, request: ExceptionRequest) => Promise<Approval>

/** A call that is to be made again and again. */
export interface ScheduledCall {
  readonly operation: ScheduledOperation
  readonly input: unknown
}

export interface Scheduling {
  /**
   * Judges a call that is to be scheduled, for its caller. @returns its input as it is kept, and the payee of a contact in it.
   * @throws Failure of the operation for an input that it refuses, `insufficient_scope`, and what no run could pass.
   */
  admit(
    context: Context,
    call: ScheduledCall,
  ): Promise<{ readonly raw: unknown; readonly input: unknown; readonly payee: NamedPayee | null }>
  /** Milliseconds until calls are due, as far as is known now; none or fewer: at once. Infinite without a schedule. */
  findWaitMs(services: Pick<Services, 'database' | 'clock' | 'onCalendar'>): Promise<number>
  /** Makes the calls that are due, and goes on with those that were left. @returns how many there were. */
  runDue(services: Services, findCaller: FindScheduledCaller, signal: AbortSignal): Promise<number>
}

/** Finds who a schedule spends for, as they are now: a key, or its owner. */
export interface FindScheduledCaller {
  readonly findKey: FindKey
  readonly findAccount: (database: Connection, id: string) => Promise<Account | undefined>
}

export interface Context extends Services {
  readonly principal: Principal
  readonly requestId: string
  /** Network address of the client; absent for calls that come from no client. */
  readonly clientAddress?: string
  /** Browser that an account signed in with before, by its cookie. */
  readonly knownBrowser?: KnownBrowser | null
  /** Arrival time of the call, used for every decision about it. */
  readonly now: Date
  /** The client's idempotency key, or null. */
  readonly idempotencyKey: string | null
  /** Label of the task that the call is for; absent or null: none. A delegated key's own comes first. */
  readonly task?: string | null
  /** Failure of the call's credential; public tools throw it if they would use the session. */
  readonly refusal?: Failure | null
  /** Id of the approval under which this call runs; absent for other calls. */
  readonly approvedBy?: string
  /** Purse by which alone a call is paid whose terms have changed: `core/failures/plan-again.ts`. */
  readonly onlyBy?: string
  /** Due time of a schedule that this call is made for, as `sch_… 2026-…`: its owner has agreed to it with the schedule. */
  readonly scheduledFor?: string
  /** What the contact stood for that a waiting call had named: the call pays that, or nobody. */
  readonly payee?: NamedPayee
  /** The input lacks what an approval does not keep: nothing is sent that needs it. */
  readonly lacksInput?: true
  /** Schedules provider calls for after the commit and before the response. @param work gets the database outside of the transaction. */
  readonly afterCommit: (work: (database: Database) => Promise<void>) => void
}

/**
 * The person who calls a public tool, or null for an unauthenticated caller. An invalid credential is rejected rather
 * than treated as a new user. @throws Failure with which the credential was rejected.
 */
export function findPerson(
  context: Pick<Context, 'principal' | 'refusal'>,
): Extract<Principal, { kind: 'session' }> | null {
  if (context.refusal !== undefined && context.refusal !== null) throw context.refusal
  return context.principal.kind === 'session' ? context.principal : null
}

/** @throws Failure `unauthenticated`. */
export function requirePerson(context: Pick<Context, 'principal'>): Extract<Principal, { kind: 'session' }> {
  if (context.principal.kind !== 'session')
    throw new Failure('unauthenticated', 'This operation requires a session.', {
      hint: 'Sign in, and send the session token as "Authorization: Bearer …".',
    })
  return context.principal
}

/** Returns the caller, who must have an account. @throws Failure `unauthenticated`. */
export function requireCaller(context: Pick<Context, 'principal'>): AccountPrincipal {
  if (context.principal.kind === 'public')
    throw new Failure('unauthenticated', 'This operation requires a credential.', {
      hint: 'Send a session token or an API key as "Authorization: Bearer …", or sign the request (RFC 9421).',
    })
  return context.principal
}
