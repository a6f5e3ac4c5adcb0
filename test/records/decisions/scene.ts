/** Decisions to seal, and the keys that verify a receipt. */

import { authenticatedReserve, decisionMac } from '../../../src/books/spending/authenticate.ts'
import { toContent } from '../../../src/books/spending/decision-content.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import type { SpendRequest } from '../../../src/books/spending/spend-request.ts'
import type { Clock } from '../../../src/core/base/clock.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { deriveSigningKey } from '../../../src/records/decisions/signing-key.ts'
import type { Connection, Database } from '../../../src/storage/database.ts'
import { buildSpend, noon, openAccount, openKey } from '../../books/spending/scene.ts'

const dataKey = Buffer.from('a data key of thirty-two letters')
/** The deployment of the tests. */
export const settings = {
  dataKey,
  receiptKey: await deriveSigningKey(dataKey),
  origin: 'https://bursar.example',
}

export const sealingDependencies = (database: Database, clock: Clock = () => noon) => ({
  onCalendar: (at: Date) => at,
  database,
  settings,
  clock,
  log: silentLog,
  unstoredCodes: new Map<string, string>(),
})

/** A signal that never fires. */
export const never = new AbortController().signal

/** An agent's key with money. @returns a function that decides on spends, one after the other. */
export async function newSpender(database: Database) {
  const accountId = await openAccount(database, 1_000_000_000n)
  const keyId = await openKey(database, accountId)
  return {
    accountId,
    keyId,
    decide: async (
      changes: Partial<SpendRequest> = {},
      { units = 1_250_000n, connection = database }: { units?: bigint; connection?: Connection } = {},
    ) => {
      const request = buildSpend({ accountId, keyId }, units, {
        facts: { category: 'transfer', amount: '1.25', asset: 'USDC', found: { note: 'kept' } },
        ...changes,
      })
      const { dataKey } = settings
      const reserve = (authenticated: SpendRequest) => reserveSpend(connection, authenticated)
      await authenticatedReserve(reserve, {
        database: connection,
        dataKey,
        log: silentLog,
        unstoredCodes: new Map(),
      })(request)
      return request.decisionId
    },
  }
}

/** Inserts many authenticated decisions at once. @param changes to the rows, after authentication. @param at of all of them. */
export async function insertDecisions(
  connection: Connection,
  count: number,
  changes: Record<string, unknown> = {},
  at = noon,
): Promise<string[]> {
  const prefix = newId('dec', at).slice(0, 20)
  const rows = Array.from({ length: count }, (_, index) => {
    const row = {
      id: `${prefix}${String(index + 1).padStart(10, '0')}`,
      at: at.toISOString().replace('Z', '000Z'),
      account_id: 'acct_many',
      key_id: null,
      policy_version: null,
      policy_hash: null,
      operation: 'wallets.transfer',
      facts: { amount: '1' },
      verdict: 'allow',
      violations: [],
      available_units: null,
    }
    return { ...row, mac: decisionMac(settings.dataKey, toContent(row)), ...changes }
  })
  await connection.call(
    {
      name: 'test_decisions',
      text: `insert into decision (id, at, account_id, operation, facts, verdict, violations, mac, written_by)
        select r.id, r.at, r.account_id, r.operation, r.facts, r.verdict, r.violations, r.mac,
          coalesce(r.written_by, pg_current_xact_id())
        from jsonb_populate_recordset(null::decision, $1::jsonb) r`,
    },
    [JSON.stringify(rows)],
  )
  return rows.map(({ id }) => id)
}

export function readChain(connection: Connection) {
  return connection.kysely.selectFrom('decision_seal').selectAll().orderBy('sequence').execute()
}
