/**
 * Sweeps whose end a reorganization of the chain may have undone. One that was lost is executed again while it is valid, and booked
 * back to the purse afterwards; one that the chain shows although it had been given up is booked to the wallet.
 */
import { sql } from 'kysely'
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { available, pursePlace } from '../../books/ledger/accounts.ts'
import { lockUnits } from '../../books/ledger/balances.ts'
import { post } from '../../books/ledger/post.ts'
import type { PayingParts } from './pay-purchase.ts'
import { isPurseOn } from './store.ts'
import { executeSweep, findSweepOutcome, readSweep, type Sweep } from './sweep-purse.ts'

type VerifyingParts = Pick<PayingParts, 'database' | 'chain' | 'clock' | 'log'> & {
  readonly settings: Pick<PayingParts['settings'], 'dataKey'>
  /** @throws when the outcome was read on another chain than the sweep. */
  readonly requireSameChain: () => Promise<void>
}

/** From its beginning, a sweep ends within this time, or is tried again for as long as a chain is silent. */
const LONGEST_MS = 24 * 60 * 60_000

interface EndedSweep extends Sweep {
  readonly state: 'open' | 'settled' | 'released'
}

/** Finds sweeps on a chain that have ended since a moment. */
export async function sweepsEndedSince(
  { database, chain }: Pick<PayingParts, 'database'> & { chain: { readonly name: string } },
  since: Date,
): Promise<readonly EndedSweep[]> {
  return database.kysely
    .selectFrom('purse_sweep')
    .innerJoin('purse', 'purse.id', 'purse_sweep.purse_id')
    .selectAll('purse_sweep')
    .select(['purse.account_id', 'purse.address', 'purse.home', 'purse.mac'])
    .where('purse_sweep.state', 'in', ['settled', 'released'])
    .where(isPurseOn('purse', chain.name))
    .where(
      sql<boolean>`exists (select from ledger_transaction t where t.id = 'sweep:' || purse_sweep.id || ':end' and t.at >= ${since})`,
    )
    .where('purse_sweep.created_at', '>=', new Date(since.getTime() - LONGEST_MS))
    .execute()
}

/** Verifies the end of a sweep again. @returns whether the outcome is certain. */
export async function verifySweep(parts: VerifyingParts, sweep: EndedSweep): Promise<boolean> {
  const { chain, clock, log } = parts
  const { asset, to } = readSweep(parts, sweep)
  const { status } = await findSweepOutcome(chain, sweep, { asset, to })
  const isPaid = status === 'settled'
  if (isPaid === (sweep.state === 'settled')) return true
  await parts.requireSameChain()
  if (isPaid) return rebook(parts, sweep, { asset, isPaid })
  if (status === 'open' && clock() < sweep.valid_before) {
    log.warn({ sweepId: sweep.id }, 'the chain lost the sweep of a purse; sending it again')
    await executeSweep(parts, sweep, { asset, to })
    return false
  }
  // Neither may the chain bring it any more.
  if (status === 'open' || status === 'canceling') return false
  return rebook(parts, sweep, { asset, isPaid })
}

/** Books the money to where the chain has it, all of it or nothing. @returns false while it is not there to be booked. */
async function rebook(
  { database, chain, clock, log }: VerifyingParts,
  { id, purse_id: purseId, account_id: accountId, units, state }: EndedSweep,
  { asset, isPaid }: { asset: Parameters<typeof lockUnits>[2]; isPaid: boolean },
): Promise<boolean> {
  const at = clock()
  const purse = available(accountId, pursePlace(purseId))
  const wallet = available(accountId, chain.name)
  const [source, destination] = isPaid ? [purse, wallet] : [wallet, purse]
  const isBooked = await database.transaction(async (connection) => {
    if ((await lockUnits(connection, source, asset)) < units) return false
    const ended = await connection.kysely
      .updateTable('purse_sweep')
      .set({ state: isPaid ? 'settled' : 'released' })
      .where('id', '=', id)
      .where('state', '=', state)
      .returning('id')
      .executeTakeFirst()
    if (ended === undefined) return true
    const { length: times } = await connection.kysely
      .selectFrom('posting')
      .select('transaction_id')
      .where('transaction_id', '>=', `sweep:${id}:again:`)
      .where('transaction_id', '<', `sweep:${id}:again;`)
      .where('ordinal', '=', 1)
      .execute()
    await post(connection, {
      // A chain may take and bring a sweep several times.
      id: `sweep:${id}:again:${times}`,
      kind: 'purse_sweep',
      reference: id,
      at,
      postings: [{ source, destination, money: { asset, units } }],
    })
    return true
  })
  if (isBooked)
    log.error({ sweepId: id, isPaid }, 'the chain undid the end of a sweep; booked it where the money is')
  else
    await raiseAlarm(
      { database, log },
      {
        domain: 'purchases',
        objectId: id,
        reason: 'sweep_undone',
        reported: { asset, units: units.toString(), isPaid },
        at,
      },
    )
  return isBooked
}
