/** Accounts of persons at the broker: opened from a verified identity, and followed. */
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { BrokerageAccounts, BrokerageApplication } from '../../providers/broker/accounts.ts'
import type { Broker } from '../../providers/broker/port.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { bookActivities } from './book-activities.ts'
import {
  claimBrokerageAccounts,
  findBrokerageAccount,
  hasOtherOwner,
  insertApplication,
  type KeptBrokerageAccount,
  readApplication,
  removeApplication,
  updateBrokerageAccount,
} from './brokerage-store.ts'
import { returnCash } from './fund-order.ts'
import { readPositions } from './positions.ts'

export interface BrokerageDependencies {
  readonly database: Database
  readonly broker: Pick<Broker, 'accounts'>
  readonly settings: { readonly dataKey: Uint8Array }
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
}

/** Records a new application in the journal, as the last step of its transaction. */
export type RecordApplication = (transaction: Connection) => Promise<void>

/**
 * Opens a person's account at the broker, once. The application is kept sealed until the broker has answered; a job
 * repeats it after a crash.
 * @throws Failure `invalid_request` when the broker does not accept the application; `provider_unavailable` when that is
 * unknown; the job goes on.
 */
export async function openBrokerageAccount(
  dependencies: BrokerageDependencies,
  {
    accountId,
    said,
    at,
    record,
  }: { accountId: string; said: BrokerageApplication; at: Date; record: RecordApplication },
): Promise<KeptBrokerageAccount> {
  const { database, broker, settings } = dependencies
  if (broker.accounts === null) throw new Error('the broker keeps no accounts of persons')
  const isNew = await database.transaction(async (connection) => {
    const isInserted = await insertApplication({ database: connection, ...settings }, { accountId, said, at })
    if (isInserted) await record(connection)
    return isInserted
  })
  if (isNew && (await sendApplication(dependencies, broker.accounts, accountId)) === 'refused')
    throw new Failure('invalid_request', 'The broker did not accept the application; nothing was opened.', {
      hint: 'Check the verified identity and the tax id, and that the e-mail address has no account at the broker.',
    })
  const kept = await findBrokerageAccount(database, accountId)
  if (kept === undefined) throw new Error(`the application of ${accountId} was not kept`)
  return kept
}

async function sendApplication(
  { database, settings, log }: BrokerageDependencies,
  accounts: BrokerageAccounts,
  accountId: string,
): Promise<'answered' | 'refused' | 'erased'> {
  const said = await readApplication({ database, ...settings }, accountId)
  if (said === null) return 'erased'
  const opened = await accounts.open(said)
  // A person with two accounts here has one there, which stays with the first.
  if (opened === null || (await hasOtherOwner(database, { accountId, providerId: opened.id }))) {
    await removeApplication(database, accountId)
    log.warn({ accountId, isTaken: opened !== null }, 'an application to the broker was refused')
    return 'refused'
  }
  await updateBrokerageAccount(database, accountId, opened)
  return 'answered'
}

/** How often an account is looked at. */
const QUIET_MS = 5 * 60_000
const BATCH = 20

/**
 * Follows accounts at the broker: repeats lost applications, reads their status, books activities, sends cash back to
 * the firm and compares holdings. A failing account does not block the others. @param signal stops the round early.
 */
export async function followBrokerageAccounts(
  dependencies: BrokerageDependencies,
  signal: AbortSignal,
): Promise<number> {
  const { database, broker, clock, log } = dependencies
  if (broker.accounts === null) return 0
  const at = clock()
  const before = new Date(at.getTime() - QUIET_MS)
  const due = await claimBrokerageAccounts(database, { before, at, limit: BATCH })
  for (const account of due) {
    if (signal.aborted) break
    await follow(dependencies, broker.accounts, account).catch((err: unknown) =>
      log.warn({ err, accountId: account.accountId }, 'following an account at the broker failed'),
    )
  }
  return due.length
}

async function follow(
  dependencies: BrokerageDependencies,
  accounts: BrokerageAccounts,
  { accountId, providerId }: KeptBrokerageAccount,
): Promise<void> {
  if (providerId === null) {
    await sendApplication(dependencies, accounts, accountId)
    return
  }
  const found = await accounts.read(providerId)
  await updateBrokerageAccount(dependencies.database, accountId, found)
  if (found.status === 'pending') return
  const named = { accountId, brokerageAccount: providerId }
  await bookActivities(dependencies, named)
  await returnCash(dependencies, named)
  await compareHoldings(dependencies, accounts, named)
}

/** Stops a holding whose quantity at the broker is another than the booked one. Holdings of open orders are skipped. */
async function compareHoldings(
  { database, log, clock }: BrokerageDependencies,
  accounts: BrokerageAccounts,
  { accountId, brokerageAccount }: { accountId: string; brokerageAccount: string },
): Promise<void> {
  const booked = await bookedHoldings(database, accountId)
  const actual = await accounts.positions(brokerageAccount)
  // An order is open until its fill is booked: read before the second look at the books, none is missed.
  const moving = await openSymbols(database, accountId)
  const again = await bookedHoldings(database, accountId)
  for (const symbol of new Set([...booked.keys(), ...actual.keys()])) {
    const [qty = 0n, found = 0n] = [booked.get(symbol), actual.get(symbol)]
    if (qty === found || again.get(symbol) !== booked.get(symbol) || moving.has(symbol)) continue
    const reported = { booked: qty.toString(), reported: found.toString() }
    const alarm = { objectId: `${accountId}:${symbol}`, reason: 'holding_differs', reported }
    await raiseAlarm({ database, log }, { domain: 'investing', ...alarm, at: clock() })
  }
}

async function bookedHoldings(database: Connection, accountId: string): Promise<Map<string, bigint>> {
  const rows = await readPositions(database, accountId)
  return new Map(rows.map(({ symbol, qty }) => [symbol, qty]))
}

async function openSymbols({ kysely }: Connection, accountId: string): Promise<ReadonlySet<string>> {
  const rows = await kysely
    .selectFrom('investing_order')
    .select('symbol')
    .distinct()
    .where('account_id', '=', accountId)
    .where('status', 'in', ['new', 'accepted', 'partially_filled'])
    .execute()
  return new Set(rows.map(({ symbol }) => symbol))
}
