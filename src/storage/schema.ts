/** Kysely types of all tables; they mirror the SQL in `sql/migrations/`. */
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

/** jsonb: read as a parsed value, written as JSON text. */
export type JsonColumn<Document = Json> = ColumnType<Document, string, string>

/** All tables. Amounts are smallest units of their asset; `…_micros` are millionths of a USD. */
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
  /** The owner's cap on all keys' spends per UTC day; null for none. */
  agent_daily_max_micros: Generated<bigint | null>
  /** ISO 3166-1 alpha-2; null if unknown. */
  country: Generated<string | null>
}

/** The row behind a session token. */
export interface SessionTable {
  id: string
  account_id: string
  created_at: Date
  expires_at: Date
  revoked_at: Date | null
  method: Generated<'passkey' | 'email' | 'sms' | 'identity_provider' | 'guest' | 'recovery'>
  /** Time of the last second factor. */
  stepped_up_at: Generated<Date | null>
}

/** A key of an agent, a developer or an OAuth grant. `policy_version` rises with every policy change. */
export interface AccessKeyTable {
  id: string
  account_id: string
  kind: 'agent' | 'developer' | 'grant'
  name: string
  thumbprint: string | null
  /** Ed25519 public key, 32 bytes as base64url. */
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

/** Used nonces of request signatures. */
export interface SignatureNonceTable {
  key_id: string
  nonce: string
  expires_at: Date
}

/** Open rate-limit windows. Unlogged: a crash resets them. */
export interface RateWindowTable {
  key: string
  opened_at: Date
  count: number
}

export interface RailControlTable {
  rail: string
  enabled: boolean
  reason: string | null
  updated_at: Date
}

/** The applied version of a database function. Hashes are hex SHA-256. */
export interface SchemaFunctionTable {
  name: string
  hash: string
  head_hash: string
  version: string
  applied_at: Date
}

/** Generated sandbox secrets. */
export interface SandboxSecretTable {
  name: string
  value: string
}

/** One movement of money, in one or more postings. Append-only; written only by the money functions. */
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

/** A decision on a spend, with its facts. Append-only. */
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
  /** HMAC by the deciding process; null until it is written. */
  mac: Generated<string | null>
  violations: JsonColumn
  /** Available balance for the verdict `insufficient_funds`. */
  available_units: bigint | null
}

/** A decision's position in the hash chain, with its receipt. Append-only; written only by the sealing job. */
export interface DecisionSealTable {
  /** Starts at 1, without gaps. */
  sequence: bigint
  decision_id: string
  /** Hash of the previous seal; 64 zeros for the first. */
  previous: string
  hash: string
  /** A compact JWS. */
  receipt: string
  sealed_at: Date
}

/** A key's budget usage per UTC day: sum and number of its unreleased spends. */
export interface BudgetUsageTable {
  key_id: string
  day: string
  used_micros: Generated<bigint>
  count: Generated<number>
}

/** Payees of a key with a cool-down, with the time of first use. `counterparty` is lower case. */
export interface PayeeTable {
  key_id: string
  counterparty: string
  first_seen_at: Date
}

/** A call that requires the owner's approval. `input` is JSON text. */
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

/**
 * Idempotent calls: a spend refers to its decision, a purchase to its payment, any other call to its first response.
 * Kept for 24 hours.
 */
export interface IdempotencyTable {
  principal: string
  key: string
  fingerprint: string
  /** A spend decision or a payment of the caller; both null for other writes. */
  decision_id: string | null
  payment_id: string | null
  answer: JsonColumn<Json | null> | null
  created_at: Date
}
