/** The tables as Kysely sees them. The SQL that makes them is in `sql/migrations/`; this file only mirrors it. */
import type { ColumnType, Generated } from 'kysely'
import type { Json } from '../base/json.ts'
import type { AlarmTables } from './schema-alarms.ts'
import type {
  DepositTable,
  PayoutTable,
  VirtualAccountOrderTable,
  VirtualAccountTable,
} from './schema-banking.ts'
import type {
  CardAuthorizationTable,
  CardEarlyTable,
  CardHoldTable,
  CardOrderTable,
  CardSettlementTable,
  CardTable,
  DebtTable,
  WebhookEventTable,
} from './schema-cards.ts'
import type { ComplianceTables } from './schema-compliance.ts'
import type { InvestingTables } from './schema-investing.ts'
import type { JournalTables } from './schema-journal.ts'
import type { McpTables } from './schema-mcp.ts'
import type { DocsFeedbackTable, MeteringTable, PaymentTable } from './schema-payments.ts'
import type {
  ChallengeTable,
  FailedFactorTable,
  FederatedIdentityTable,
  LoginDestinationTable,
  MfaRecoveryCodeTable,
  MfaTable,
  OpenidRecordTable,
  PasskeyTable,
  SandboxMessageTable,
} from './schema-people.ts'
import type { OutflowSlotTable, ReservationTable } from './schema-spending.ts'
import type {
  ChainCursorTable,
  IntentTable,
  OwedMintTable,
  RelayTable,
  TransferTable,
  WalletDriftTable,
  WalletShortfallTable,
  WalletSignerTable,
  WalletTable,
} from './schema-wallets.ts'

/** jsonb: read parsed, written as its JSON text. */
export type JsonColumn<Document = Json> = ColumnType<Document, string, string>

/** Every table of the gateway. Amounts are smallest units of their asset; `…_micros` are millionths of a USD. */
export interface Schema extends AlarmTables, ComplianceTables, InvestingTables, JournalTables, McpTables {
  account: AccountTable
  session: SessionTable
  access_key: AccessKeyTable
  challenge: ChallengeTable
  passkey: PasskeyTable
  login_destination: LoginDestinationTable
  federated_identity: FederatedIdentityTable
  mfa: MfaTable
  mfa_recovery_code: MfaRecoveryCodeTable
  failed_factor: FailedFactorTable
  sandbox_message: SandboxMessageTable
  openid_record: OpenidRecordTable
  wallet: WalletTable
  wallet_signer: WalletSignerTable
  intent: IntentTable
  relay: RelayTable
  wallet_drift: WalletDriftTable
  wallet_shortfall: WalletShortfallTable
  chain_cursor: ChainCursorTable
  owed_mint: OwedMintTable
  signature_nonce: SignatureNonceTable
  rate_window: RateWindowTable
  rail_control: RailControlTable
  sandbox_secret: SandboxSecretTable
  schema_function: SchemaFunctionTable
  transfer: TransferTable
  ledger_transaction: LedgerTransactionTable
  posting: PostingTable
  balance: BalanceTable
  decision: DecisionTable
  decision_seal: DecisionSealTable
  approval: ApprovalTable
  reservation: ReservationTable
  outflow_slot: OutflowSlotTable
  budget_usage: BudgetUsageTable
  payee: PayeeTable
  card: CardTable
  card_order: CardOrderTable
  card_authorization: CardAuthorizationTable
  card_hold: CardHoldTable
  card_settlement: CardSettlementTable
  debt: DebtTable
  card_early: CardEarlyTable
  webhook_event: WebhookEventTable
  virtual_account: VirtualAccountTable
  virtual_account_order: VirtualAccountOrderTable
  deposit: DepositTable
  payout: PayoutTable
  idempotency: IdempotencyTable
  payment: PaymentTable
  metering: MeteringTable
  docs_feedback: DocsFeedbackTable
}

/** A person, or a guest. */
export interface AccountTable {
  id: string
  role: Generated<'user' | 'admin'>
  status: Generated<'active' | 'locked'>
  guest: Generated<boolean>
  display_name: string
  kyc_level: Generated<string>
  created_at: Date
  locked_at: Generated<Date | null>
  lock_reason: Generated<'second_factor' | 'admin' | 'person' | null>
  /** The owner's cap over the spends of all keys in a UTC day; null: none. */
  agent_daily_max_micros: Generated<bigint | null>
  /** ISO 3166-1 alpha-2; null while it is not known. */
  country: Generated<string | null>
}

/** A signed-in session: the row behind a session token. */
export interface SessionTable {
  id: string
  account_id: string
  created_at: Date
  expires_at: Date
  revoked_at: Date | null
  method: Generated<'passkey' | 'email' | 'sms' | 'identity_provider' | 'guest' | 'recovery'>
  /** When a second factor was last shown on it. */
  stepped_up_at: Generated<Date | null>
}

/** A key: an agent's, a developer's, or an OAuth grant. `policy_version` rises with every change of its policy. */
export interface AccessKeyTable {
  id: string
  account_id: string
  kind: 'agent' | 'developer' | 'grant'
  name: string
  thumbprint: string | null
  /** base64url of the 32 bytes of an Ed25519 key. */
  public_key: string | null
  /** SHA-256. */
  secret_hash: Uint8Array | null
  scopes: readonly string[]
  status: Generated<'active' | 'paused' | 'revoked'>
  policy: JsonColumn<Json | null> | null
  policy_version: Generated<number>
  policy_hash: string | null
  created_at: Date
  expires_at: Date | null
}

/** Nonces of request signatures that were spent. */
export interface SignatureNonceTable {
  key_id: string
  nonce: string
  expires_at: Date
}

/** Open windows of the rate limits. Unlogged: a crash forgets them. */
export interface RateWindowTable {
  key: string
  opened_at: Date
  count: number
}

/** Which rails are switched on. */
export interface RailControlTable {
  rail: string
  enabled: boolean
  reason: string | null
  updated_at: Date
}

/** A database function as it was last applied. Hashes are SHA-256, hex. */
export interface SchemaFunctionTable {
  name: string
  hash: string
  head_hash: string
  version: string
  applied_at: Date
}

/** Secrets that the sandbox made for itself. */
export interface SandboxSecretTable {
  name: string
  value: string
}

/** One movement of money, in one or more postings. Append-only; written by the money functions alone. */
export interface LedgerTransactionTable {
  id: string
  kind: string
  reference: string
  at: Date
}

/** Money from one ledger account to another. Append-only. */
export interface PostingTable {
  transaction_id: string
  ordinal: number
  source: string
  destination: string
  asset: string
  units: bigint
}

/** The sum of an owner account's postings, kept by the money functions. System accounts have none. */
export interface BalanceTable {
  account: string
  asset: string
  units: bigint
}

/** What was decided on a spend, and on which facts. Append-only. */
export interface DecisionTable {
  id: string
  at: Date
  account_id: string
  key_id: string | null
  policy_version: number | null
  policy_hash: string | null
  operation: string
  facts: JsonColumn
  verdict: 'allow' | 'deny' | 'insufficient_funds' | 'approval_required'
  /** HMAC of the process that took it; null until that has authenticated it. */
  mac: Generated<string | null>
  violations: JsonColumn
  /** What was available, where the verdict is `insufficient_funds`. */
  available_units: bigint | null
}

/** A decision's place in the hash chain, and its receipt. Append-only; written by the sealing job alone. */
export interface DecisionSealTable {
  /** From 1, without a gap. */
  sequence: bigint
  decision_id: string
  /** The hash of the seal before; 64 zeros for the first. */
  previous: string
  hash: string
  /** A compact JWS. */
  receipt: string
  sealed_at: Date
}

/** What a key used of its budget on a UTC day: the sum and number of its spends that were not released. */
export interface BudgetUsageTable {
  key_id: string
  day: string
  used_micros: Generated<bigint>
  count: Generated<number>
}

/** Whom a key under a cool-down has asked to pay, and since when. `counterparty` is lower case. */
export interface PayeeTable {
  key_id: string
  counterparty: string
  first_seen_at: Date
}

/** A call that waits for its owner, or waited. `input` is the call's input as JSON text. */
export interface ApprovalTable {
  id: string
  account_id: string
  key_id: string
  decision_id: string
  operation: string
  input: string
  fingerprint: string
  idempotency_key: string | null
  status: 'pending' | 'approved' | 'rejected'
  answer: JsonColumn<Json | null> | null
  problem: JsonColumn<Json | null> | null
  created_at: Date
  expires_at: Date
  decided_at: Date | null
}

/** Calls that came with an idempotency key: a spend's by its decision, a purchase's by its payment, any other's by its first answer. Kept for 24 hours. */
export interface IdempotencyTable {
  principal: string
  key: string
  fingerprint: string
  /** What is behind it: a spend decision, or a payment of the caller's own; neither for writes that spend nothing. */
  decision_id: string | null
  payment_id: string | null
  answer: JsonColumn<Json | null> | null
  created_at: Date
}
