/** Decisions to seal, and what a receipt is verified with. */
import type { Clock } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { reserveSpend, type SpendRequest } from '../../src/spending/reserve.ts'
import type { Connection, Database } from '../../src/storage/database.ts'
import { noon, openAccount, openKey, spendOf } from '../spending/scene.ts'

/** The deployment of the tests. */
export const settings = {
  dataKey: Buffer.from('a data key of thirty-two letters'),
  origin: 'https://bursar.example',
}

/** What sealing needs. */
export const sealingOn = (database: Database) => ({ database, settings, clock: (() => noon) satisfies Clock })

/** A signal that never comes. */
export const never = new AbortController().signal

/** An agent's key with money behind it. @returns decides on spends, one after the other. */
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
      const request = spendOf({ accountId, keyId }, units, {
        facts: { category: 'transfer', amount: '1.25', asset: 'USDC', found: { note: 'kept' } },
        ...changes,
      })
      await reserveSpend(connection, request)
      return request.decisionId
    },
  }
}

/** Inserts many decisions at once. */
export async function insertDecisions(connection: Connection, count: number): Promise<void> {
  const prefix = newId('dec', noon).slice(0, 20)
  await connection.call(
    {
      name: 'test_decisions',
      text: `insert into decision (id, at, account_id, operation, facts, verdict, violations)
        select $1 || lpad(n::text, 10, '0'), $2, 'acct_many', 'wallets.transfer', '{"amount":"1"}', 'allow', '[]'
        from generate_series(1, $3) n`,
    },
    [prefix, noon, count],
  )
}

/** The chain as it is stored. */
export function chainOf(connection: Connection) {
  return connection.kysely.selectFrom('decision_seal').selectAll().orderBy('sequence').execute()
}
