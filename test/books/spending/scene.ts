/** Accounts, keys and money, for tests of the money core. */

import { available, external } from '../../../src/books/ledger/accounts.ts'
import { post } from '../../../src/books/ledger/post.ts'
import type { SpendLimits, SpendRequest } from '../../../src/books/spending/spend-request.ts'
import { newId } from '../../../src/core/base/ids.ts'
import type { Connection } from '../../../src/storage/database.ts'

/** The time of the tests. */
export const noon = new Date('2026-11-20T12:00:00.000Z')

/** The ledger place of all money in these tests. */
export const place = 'base-sepolia'

/** Limits without any restriction. */
export const unlimited: SpendLimits = { dailyMaxMicros: null, dailyMaxCount: null }

/** A new account with money. @param units of USDC, six decimals. */
export async function openAccount(connection: Connection, units: bigint): Promise<string> {
  const id = newId('acct', noon)
  await connection.kysely
    .insertInto('account')
    .values({ id, display_name: 'Ada', created_at: noon })
    .execute()
  if (units > 0n) await deposit(connection, id, units)
  return id
}

/** Books an external deposit. @param units of USDC. */
export async function deposit(connection: Connection, accountId: string, units: bigint): Promise<void> {
  await post(connection, {
    id: newId('tx', noon),
    kind: 'deposit',
    reference: 'test',
    at: noon,
    postings: [
      { source: external(place), destination: available(accountId, place), money: { asset: 'USDC', units } },
    ],
  })
}

/** A new active key of an account, with version 1 of its policy. */
export async function openKey(connection: Connection, accountId: string): Promise<string> {
  const id = newId('key', noon)
  await connection.kysely
    .insertInto('access_key')
    .values({ id, account_id: accountId, kind: 'agent', name: 'agent', scopes: [], created_at: noon })
    .execute()
  return id
}

/** Sets an account's caps over all its keys. @param day millionths of a USD; null removes it. */
export async function capAccount(
  connection: Connection,
  accountId: string,
  day: bigint | null,
  { week = null, month = null }: { week?: bigint | null; month?: bigint | null } = {},
): Promise<void> {
  await connection.kysely
    .updateTable('account')
    .set({ agent_daily_max_micros: day, agent_weekly_max_micros: week, agent_monthly_max_micros: month })
    .where('id', '=', accountId)
    .execute()
}

/** A spend of USDC at its value in USD. @param keyId null for a person's session. */
export function buildSpend(
  { accountId, keyId, limits = unlimited }: { accountId: string; keyId: string | null; limits?: SpendLimits },
  units: bigint,
  changes: Partial<SpendRequest> = {},
): SpendRequest {
  return {
    decisionId: newId('dec', noon),
    accountId,
    key: keyId === null ? null : { id: keyId, policyVersion: 1, limits },
    policyHash: 'hash',
    operation: 'wallets.transfer',
    facts: { category: 'transfer' },
    violations: [],
    money: { asset: 'USDC', units },
    usdMicros: units,
    counterparty: null,
    cooldownSeconds: null,
    needsApproval: false,
    isApproved: false,
    place,
    idempotency: null,
    at: noon,
    ...changes,
  }
}

/** The database's counters for a key's day. */
export async function readUsage(connection: Connection, keyId: string, day = '2026-11-20') {
  const row = await connection.kysely
    .selectFrom('budget_usage')
    .select(['used_micros as usedMicros', 'count'])
    .where('key_id', '=', keyId)
    .where('day', '=', day)
    .executeTakeFirst()
  return row ?? { usedMicros: 0n, count: 0 }
}
