import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { available } from '../../../src/books/ledger/accounts.ts'
import { queryDeposits } from '../../../src/rails/buying/find-returns.ts'
import { onBothEngines } from '../../engines.ts'

onBothEngines('money that a seller sent back', (database) => {
  it('is looked for among the deposits of its receivers, not among all postings', async () => {
    const plan = await database().transaction(async (connection) => {
      await sql`set local enable_seqscan = off`.execute(connection.kysely)
      const deposits = queryDeposits(connection, {
        ...{ accounts: [available('acct_1', 'base'), available('acct_1', 'purse_1')], asset: 'USDC' },
        ...{ since: new Date('2026-11-01T00:00:00Z'), except: [] },
      })
      return JSON.stringify(await deposits.explain())
    })
    expect(plan).toContain('posting_arrived')
  })
})
