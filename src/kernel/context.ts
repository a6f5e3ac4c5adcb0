/** What a call sees of the world: the services of the process, and who asks, when and from where. */
import type { AmlLimits } from '../../policies/aml/limits.ts'
import type { KycLimits } from '../../policies/kyc.ts'
import type { Clock } from '../base/clock.ts'
import type { NewId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { AccountPrincipal, Principal } from '../base/principal.ts'
import { Failure } from '../failures/failure.ts'
import type { WriteJournal } from '../journal/write.ts'
import type { Money } from '../money/money.ts'
import type { BankingProvider } from '../providers/banking.ts'
import type { Broker } from '../providers/broker.ts'
import type { CardProcessor } from '../providers/card-processor.ts'
import type { Address, Chain, Hex } from '../providers/chain.ts'
import type { IdentityProvider } from '../providers/identity-provider.ts'
import type { IdentityReview } from '../providers/identity-review.ts'
import type { Messages } from '../providers/messages.ts'
import type { Metrics } from '../providers/metrics.ts'
import type { RailControls } from '../providers/rail-controls.ts'
import type { RateLimit, RateLimiter } from '../providers/rate-limiter.ts'
import type { Rates } from '../providers/rates.ts'
import type { Sanctions } from '../providers/sanctions.ts'
import type { AddressScreening } from '../providers/screening.ts'
import type { SwapAggregator } from '../providers/swap-aggregator.ts'
import type { Tracing } from '../providers/tracing.ts'
import type { TravelRuleNetwork } from '../providers/travel-rule-network.ts'
import type { Approval } from '../spending/approvals.ts'
import type { Vouch } from '../spending/authenticate.ts'
import type { ReserveQueue } from '../spending/reserve-queue.ts'
import type { Connection, Database } from '../storage/database.ts'

/** What a configuration decides about the product itself. */
export interface Settings {
  readonly mode: 'sandbox' | 'production'
  /** Scheme, host and port that clients use. */
  readonly origin: string
  readonly fxPrice: Money
  readonly x402PayTo: Address
  readonly trustedProxies: readonly string[]
  /** Limits by class name, such as `mutations`. */
  readonly rateLimits: ReadonlyMap<string, RateLimit>
  /** The secret behind session tokens. */
  readonly sessionKey: Uint8Array
  /** The secret that seals second factors and hashes addresses: lost, nobody can use either any more. */
  readonly dataKey: Uint8Array
  /** The WebAuthn relying party: a registrable domain. */
  readonly rpId: string
  /** Origins whose pages are ours: passkeys are used there, and cookies may change things from there. The first is the one to show people. */
  readonly webOrigins: readonly string[]
  /** In production the one administrator; null: nobody is. */
  readonly founderAccount: string | null
  /** Whether demo sessions are given out. */
  readonly guests: boolean
  /** What the AML rules count against. */
  readonly aml: AmlLimits
  readonly kycLimits: KycLimits
  /** The institution that originates transfers, as Travel Rule data names it. */
  readonly vasp: { readonly name: string; readonly lei: string | null }
  /** Where stablecoins go that cards have spent. */
  readonly cardTreasury: Address
  /** Virtual accounts that an owner may have of one currency. */
  readonly accountsPerCurrency: number
  /** What whoever watches shows; null: in production only this machine may watch. */
  readonly metricsToken: string | null
}

/** What the sandbox made for itself, to be shown to whoever asks. */
export interface SandboxCredentials {
  readonly demoApiKey: string
  /** Signs the card processor's webhooks: `whsec_` and base64. */
  readonly lithicWebhookSecret: string
  /** Signs the banking provider's webhooks: PKCS #8 PEM. */
  readonly bridgeWebhookPrivateKey: string
  /** Holds USDC on the sandbox chain. */
  readonly payer: { readonly address: Address; readonly privateKey: Hex }
}

/** The services of the process, joined in src/runtime.ts. */
export interface Services {
  readonly settings: Settings
  readonly database: Database
  /** Decides on spends and holds their money; those of one account that come at once go together. Never within a transaction. */
  readonly reserve: ReserveQueue['reserve']
  /** Authenticates decisions that functions of the database have made. */
  readonly vouch: Vouch
  /** Writes what people and administrators change, within the transaction of the change. */
  readonly journal: WriteJournal
  readonly chain: Chain
  readonly broker: Broker
  readonly swapAggregators: readonly SwapAggregator[]
  readonly rates: Rates
  readonly railControls: RailControls
  readonly sanctions: Sanctions
  readonly identityReview: IdentityReview
  readonly screening: AddressScreening
  /** Null: no other institution can be told. */
  readonly travelRuleNetwork: TravelRuleNetwork | null
  readonly cardProcessor: CardProcessor
  readonly bankingProvider: BankingProvider
  readonly rateLimiter: RateLimiter
  readonly messages: Messages
  /** By the name in their route. */
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
}

/** Finds a key and its owner's account as they are now; undefined where the key was revoked. */
export type FindKey = (
  database: Connection,
  by: { id: string },
) => Promise<Omit<Extract<AccountPrincipal, { kind: 'key' }>, 'kind'> | undefined>

/**
 * Runs an approved call once and stores its outcome. Safe to repeat.
 * @throws Failure where the outcome is unknown: the call may be repeated.
 */
export type RunApproved = (
  context: Omit<Context, 'principal' | 'idempotencyKey' | 'afterCommit'>,
  approval: Approval,
  findKey: FindKey,
) => Promise<Approval>

/** One call. */
export interface Context extends Services {
  readonly principal: Principal
  readonly requestId: string
  /** The moment that the call arrived; every decision about it is taken for this moment. */
  readonly now: Date
  /** The client's idempotency key, if it gave one. */
  readonly idempotencyKey: string | null
  /** Why the credential that came with the call does not hold: an open tool that would use its session tells it. */
  readonly refusal?: Failure | null
  /** The approval under which the owner has this very call run; absent for every other call. */
  readonly approvedBy?: string
  /** Work for after the effect is committed and before the answer is given: calls to providers. */
  readonly afterCommit: (work: () => Promise<void>) => void
}

/**
 * The person who calls an open tool, or null for a stranger. Whoever shows a credential that does not hold is none: they
 * would be taken for somebody new. @throws Failure that the credential was refused with.
 */
export function personIfAny(
  context: Pick<Context, 'principal' | 'refusal'>,
): Extract<Principal, { kind: 'session' }> | null {
  if (context.refusal !== undefined && context.refusal !== null) throw context.refusal
  return context.principal.kind === 'session' ? context.principal : null
}

/** The person who calls. @throws Failure `unauthenticated`. */
export function personOf(context: Pick<Context, 'principal'>): Extract<Principal, { kind: 'session' }> {
  if (context.principal.kind !== 'session')
    throw new Failure('unauthenticated', 'This operation needs a session.', {
      hint: 'Sign in, and send the session token as "Authorization: Bearer …".',
    })
  return context.principal
}

/** The caller, who must have an account. @throws Failure `unauthenticated`. */
export function callerOf(context: Pick<Context, 'principal'>): AccountPrincipal {
  if (context.principal.kind === 'public')
    throw new Failure('unauthenticated', 'This operation needs a credential.', {
      hint: 'Send a session token or an API key as "Authorization: Bearer …", or sign the request (RFC 9421).',
    })
  return context.principal
}
