/** Intents: the text a signer signs and the operation it authorizes. Each is used once. */
import type { Selectable } from 'kysely'
import { deleteInPortions } from '../../../core/base/portions.ts'
import { type Stablecoin, stablecoins } from '../../../core/money/money.ts'
import type { Address, Hex, SwapRoute } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import type { IntentTable } from '../../../storage/schema.ts'
import { parseRoute, routeJson } from '../transfers/swap-route.ts'

/** How long an intent can be signed. */
export const INTENT_LIFETIME_MS = 5 * 60_000

/** Extra validity on the chain, so that a transfer sent at the last moment can still be mined. */
const CHAIN_GRACE_MS = 5 * 60_000

/**
 * Retention of unused intents: the maximum duration of an approval, so that a call that waited for one can still run.
 */
const RETENTION_MS = 8 * 24 * 60 * 60_000

/** Payment of an intent. @property destination lower case. */
export interface TransferFields {
  readonly token: Stablecoin
  readonly units: bigint
  readonly destination: Address
  readonly chain: string
  /** Route of a swap, which the destination executes; absent: a plain payment. */
  readonly route?: SwapRoute
}

/** On-chain allowance of an agent. @property dailyMicros millionths of a US dollar per UTC day. */
export interface AllowanceFields {
  readonly agentId: string
  readonly dailyMicros: bigint
}

/** An intent as stored. @property message the RFC 8785 JSON whose SHA-256 is `hash`. */
export interface Intent {
  readonly id: string
  readonly accountId: string
  /** Key that requested the intent; null for a person. For an allowance: the agent it applies to. */
  readonly agentId: string | null
  /** Chain whose operation is signed. */
  readonly chain: string
  readonly message: string
  readonly hash: Hex
  readonly operationHash: Hex
  readonly operationId: string
  readonly transfer: TransferFields | null
  readonly allowance: AllowanceFields | null
  /** Prepared payout that the transfer funds; null: an ordinary transfer. */
  readonly payoutId: string | null
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly usedAt: Date | null
}

/** Last moment at which the chain executes the intent's operation. */
export function findValidUntil({ expiresAt }: Pick<Intent, 'expiresAt'>): Date {
  return new Date(expiresAt.getTime() + CHAIN_GRACE_MS)
}

export async function insertIntent(database: Connection, intent: Omit<Intent, 'usedAt'>): Promise<void> {
  await database.kysely
    .insertInto('intent')
    .values({
      id: intent.id,
      account_id: intent.accountId,
      kind: intent.transfer === null ? 'allowance' : 'transfer',
      message: intent.message,
      hash: intent.hash,
      operation_hash: intent.operationHash,
      operation_id: intent.operationId,
      token: intent.transfer?.token ?? null,
      units: intent.transfer?.units ?? null,
      destination: intent.transfer?.destination ?? null,
      chain: intent.chain,
      route: intent.transfer?.route === undefined ? null : JSON.stringify(routeJson(intent.transfer.route)),
      agent_id: intent.agentId,
      daily_micros: intent.allowance?.dailyMicros ?? null,
      payout_id: intent.payoutId,
      created_at: intent.createdAt,
      expires_at: intent.expiresAt,
      used_at: null,
    })
    .execute()
}

export async function findIntent(
  database: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<Intent | undefined> {
  const row = await database.kysely
    .selectFrom('intent')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row === undefined ? undefined : parseIntent(row)
}

/**
 * Finds a caller's newest unused intent for the same payment that was open at a moment.
 * @param keyId null for a person. @param payoutId null for an ordinary transfer.
 */
export async function findOpenIntent(
  database: Connection,
  {
    accountId,
    keyId,
    transfer,
    payoutId,
    at,
  }: {
    accountId: string
    keyId: string | null
    transfer: TransferFields
    payoutId: string | null
    at: Date
  },
): Promise<Intent | undefined> {
  const row = await database.kysely
    .selectFrom('intent')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('kind', '=', 'transfer')
    .where('used_at', 'is', null)
    .where('agent_id', keyId === null ? 'is' : '=', keyId)
    .where('payout_id', payoutId === null ? 'is' : '=', payoutId)
    .where('token', '=', transfer.token)
    .where('units', '=', transfer.units)
    .where('destination', '=', transfer.destination)
    .where('route', 'is', null)
    .where('chain', '=', transfer.chain)
    .where('created_at', '<=', at)
    .where('expires_at', '>', at)
    .orderBy('id', 'desc')
    .executeTakeFirst()
  return row === undefined ? undefined : parseIntent(row)
}

/** Marks an intent as used, once. @returns whether it was unused before. */
export async function useIntent(
  database: Connection,
  { id, at }: { id: string; at: Date },
): Promise<boolean> {
  const row = await database.kysely
    .updateTable('intent')
    .set({ used_at: at })
    .where('id', '=', id)
    .where('used_at', 'is', null)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Uses up the unused intents of a payout, whose terms are about to be signed anew. */
export async function endPayoutIntents(
  database: Connection,
  { payoutId, at }: { payoutId: string; at: Date },
): Promise<void> {
  await database.kysely
    .updateTable('intent')
    .set({ used_at: at })
    .where('payout_id', '=', payoutId)
    .where('used_at', 'is', null)
    .execute()
}

/** Deletes intents that can no longer be used. */
export async function sweepIntents(database: Connection, now: Date): Promise<void> {
  const oldest = new Date(now.getTime() - RETENTION_MS)
  await deleteInPortions(async (limit) => {
    const expired = database.kysely
      .selectFrom('intent')
      .select('id')
      .where('expires_at', '<', oldest)
      .limit(limit)
    return (await database.kysely.deleteFrom('intent').where('id', 'in', expired).executeTakeFirst())
      .numDeletedRows
  })
}

function parseIntent(row: Selectable<IntentTable>): Intent {
  const token = stablecoins.find((symbol) => symbol === row.token)
  const route = parseRoute(row.route)
  return {
    id: row.id,
    accountId: row.account_id,
    agentId: row.agent_id,
    chain: row.chain,
    message: row.message,
    hash: toHex(row.hash),
    operationHash: toHex(row.operation_hash),
    operationId: row.operation_id,
    transfer:
      row.kind === 'transfer' && token !== undefined && row.units !== null && row.destination !== null
        ? {
            ...{ token, units: row.units, destination: toHex(row.destination), chain: row.chain },
            ...(route === null ? {} : { route }),
          }
        : null,
    allowance:
      row.kind === 'allowance' && row.agent_id !== null && row.daily_micros !== null
        ? { agentId: row.agent_id, dailyMicros: row.daily_micros }
        : null,
    payoutId: row.payout_id,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    usedAt: row.used_at,
  }
}

function toHex(text: string): Hex {
  return `0x${text.replace(/^0x/, '')}`
}
