/**
 * The escrow of an account: a smart account beside its wallet, for which the gateway alone signs, at the same address on every
 * chain. It holds what cards have promised of a wallet that its owner can empty. Money comes by pulls on its own chain, within the
 * card programme's allowance there, pays for clearings, and goes back to the wallet on that chain when no purchase holds it.
 * Everything on its way stays held until the chain has decided.
 */
import { raiseAlarm } from '../../../books/alarms/alarms.ts'
import { escrowPlace } from '../../../books/ledger/accounts.ts'
import { balances } from '../../../books/ledger/balances.ts'
import { type AuthenticateDecisions, isAuthentic } from '../../../books/spending/authenticate.ts'
import { type Coverage, pullParameters, type WantedPulls } from '../../../books/spending/coverage.ts'
import {
  type ContentRow,
  contentColumns,
  type MadeRow,
  toContent,
} from '../../../books/spending/decision-content.ts'
import { keyedHash } from '../../../core/base/seal.ts'
import { timers } from '../../../core/base/timers.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { type Stablecoin, stablecoins } from '../../../core/money/money.ts'
import { type Address, CARDS_AGENT, type Chain } from '../../../providers/chain/port.ts'
import { type Connection, callForRow } from '../../../storage/database.ts'
import { isWalletBusy, walletBusy } from '../signing/signer-store.ts'
import { buildEscrow, findWallet, lowerCase, parseStablecoin } from '../store.ts'
import {
  sendTransfer,
  type TransferAuthorization,
  type TransferDependencies,
} from '../transfers/send-transfer.ts'

/** How often the outcome of a pull is looked up. */
const POLL_MS = 50
/** A failed pull of what was approved is tried again after this long. */
const PAUSE_MS = 60_000
/** Money that no purchase holds stays this long after a pull, because the purchase that waited for it takes it. */
const STAYS_MS = 20_000
const BATCH = 50
/** Prefix of the places of an escrow's money. */
const ESCROW = escrowPlace('')

const byOwner: TransferAuthorization = { signer: 'sandbox', authorization: { kind: 'gateway' } }
const byAllowance: TransferAuthorization = {
  signer: 'sandbox',
  authorization: { kind: 'allowance', agentId: CARDS_AGENT },
}

/** @property chain of the escrow's money. */
export interface EscrowParts extends TransferDependencies {
  readonly vouch: AuthenticateDecisions
}

interface EveryChain<On> {
  readonly chains: { readonly all: readonly On[] }
}

/**
 * Pulls money for a purchase and waits for it. Money that arrives later is given back.
 * @returns whether all of it has arrived within `withinMs`.
 */
export async function pullForPurchase(
  parts: EscrowParts & EveryChain<EscrowParts['chain']>,
  { accountId, token, pulls, coverages }: WantedPulls,
  withinMs: number,
): Promise<boolean> {
  const until = timers.monotonic() + withinMs
  for (const { place, asset, units } of pulls) {
    const chain = parts.chains.all.find(({ name }) => name === place)
    if (chain === undefined) return false
    const there = { ...parts, chain }
    const pull = await beginPull(there, {
      accountId,
      token,
      asset: parseStablecoin(asset),
      units: BigInt(units),
      coverage: coverages.find((coverage) => coverage.place === place) ?? null,
      at: parts.clock(),
    })
    // It is finished by the job where this process is too slow or dies.
    if (pull !== null) void sendPull(there, { ...pull, authorizedBy: byAllowance })
  }
  for (;;) {
    const [row] = await parts.database.call<{ open: bigint; released: bigint; settled: bigint }>(
      {
        name: 'card_pulls_of_purchase',
        text: `select count(*) filter (where status = 'open') as open, count(*) filter (where status = 'released') as released,
            count(*) filter (where status = 'settled') as settled
          from card_pull where account_id = $1 and token = $2`,
      },
      [accountId, token],
    )
    if (row === undefined || row.released > 0n) return false
    if (row.open === 0n) return row.settled > 0n
    if (timers.monotonic() > until) return false
    await timers.sleep(POLL_MS)
  }
}

/**
 * Begins to pull what approved purchases hold in a wallet on a chain.
 * @returns the number of pulls, which {@link keepEscrows} sends.
 */
export async function beginPullsOfHolds(parts: BeginningParts, accountId: string, at: Date): Promise<number> {
  let begun = 0
  for (const asset of stablecoins)
    if ((await beginPull(parts, { accountId, token: null, asset, units: null, coverage: null, at })) !== null)
      begun += 1
  return begun
}

interface BegunPull {
  readonly accountId: string
  readonly decisionId: string
  readonly asset: Stablecoin
  readonly units: bigint
}

type OpeningParts = Pick<EscrowParts, 'database'> & {
  readonly chain: Pick<Chain, 'name' | 'walletAddress' | 'opensWith'>
  readonly settings: { readonly dataKey: Uint8Array }
}

type BeginningParts = OpeningParts & Pick<EscrowParts, 'newId' | 'vouch'>

async function beginPull(
  parts: BeginningParts,
  pull: {
    readonly accountId: string
    readonly token: string | null
    readonly asset: Stablecoin
    readonly units: bigint | null
    readonly coverage: Coverage | null
    readonly at: Date
  },
): Promise<BegunPull | null> {
  const { database, chain, newId, vouch } = parts
  const { accountId, token, asset, units, coverage, at } = pull
  const [left, since, tokens, prices] = pullParameters(coverage)
  const decisionId = newId('dec', at)
  await openEscrow(parts, accountId)
  return database.transaction(async (connection) => {
    const row = await callForRow<{ units: bigint | null; made: readonly MadeRow[] }>(
      connection,
      {
        name: 'card_pull_begin',
        text: `select p.units, decisions_made(array[$1]) as made from card_pull_begin($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) p (units)`,
      },
      [decisionId, accountId, token, chain.name, asset, units, at, left, since, tokens, prices],
    )
    if (row.units === null) return null
    await vouch(connection, row.made)
    return { accountId, decisionId, asset, units: row.units }
  })
}

/** Stores the address of an account's escrow, by which its movements are known, and the wallet to which its money goes back. */
async function openEscrow({ database, chain, settings }: OpeningParts, accountId: string): Promise<void> {
  const first = chain.opensWith === null ? null : lowerCase(chain.opensWith)
  const escrow = lowerCase(await chain.walletAddress(buildEscrow(accountId, first)))
  const home = await findWallet(database, accountId)
  if (home === undefined) return
  await database.call(
    {
      name: 'wallet_escrow',
      text: `update wallet set escrow = $2, escrow_mac = $3, escrow_first = $4 where account_id = $1 and escrow is null`,
    },
    [accountId, escrow, escrowMac(settings.dataKey, { accountId, escrow, home }), first],
  )
}

/**
 * Computes where an account's escrow is. Its first owner is stored, so that it is checked: who only writes to the database cannot
 * redirect a pull.
 */
async function findOpenEscrow(
  { database, chain, settings }: OpeningParts,
  accountId: string,
): Promise<Address> {
  const row = await database.kysely
    .selectFrom('wallet')
    .select(['address', 'escrow_first', 'escrow_mac'])
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  const address = await chain.walletAddress(buildEscrow(accountId, row.escrow_first))
  const parts = { accountId, escrow: lowerCase(address), home: row.address }
  if (row.escrow_mac === escrowMac(settings.dataKey, parts)) return address
  throw new Error(`The escrow of ${accountId} is not the one that this gateway has opened.`)
}

/** Authenticates where the money of an escrow goes back to: who only writes to the database cannot redirect it. */
function escrowMac(
  dataKey: Uint8Array,
  { accountId, escrow, home }: { accountId: string; escrow: string; home: string },
): string {
  return keyedHash(dataKey, 'escrow home', `${accountId} ${escrow} ${home.toLowerCase()}`)
}

/** Sends what was begun. A refusal ends the pull; anything unknown is finished by the settle-pending job. */
async function sendPull(
  parts: EscrowParts,
  { accountId, decisionId, asset, units, authorizedBy }: BegunPull & { authorizedBy: TransferAuthorization },
): Promise<void> {
  const destination = await findOpenEscrow(parts, accountId).catch((err: unknown) => {
    logOpen(parts, decisionId, err)
    return null
  })
  if (destination === null) return
  await sendTransfer(parts, {
    ...{ authorizedBy, accountId, decisionId, token: asset, units },
    destination,
    at: parts.clock(),
  }).catch((err: unknown) => logOpen(parts, decisionId, err))
}

function logOpen({ log }: Pick<EscrowParts, 'log'>, decisionId: string, err: unknown): void {
  if (err instanceof Failure && err.code === 'conflict') return
  log.warn({ err, decisionId }, 'money on its way to or from an escrow has not arrived')
}

/**
 * Runs one round on a chain: sends pulls that were begun, pulls what approved purchases hold in wallets with owners, and gives back
 * what none holds. @param signal stops the round early. @returns the number of movements.
 */
export async function keepEscrows(parts: EscrowParts, signal: AbortSignal): Promise<number> {
  const { database, clock } = parts
  const at = clock()
  for (const accountId of await accountsAtRisk(database, { chain: parts.chain.name, at })) {
    if (signal.aborted) return 0
    await beginPullsOfHolds(parts, accountId, at)
  }
  const pulls = await unsentPulls(parts, at)
  if (!signal.aborted) await Promise.all(pulls.map((pull) => sendPull(parts, pull)))
  const idle = signal.aborted ? [] : await idleEscrows(parts, clock())
  // Each waits for the chain, and the next round's pulls wait for all of them.
  const returned = await Promise.all(idle.map((escrow) => giveBack(parts, escrow)))
  return pulls.length + returned.filter(Boolean).length
}

/** Accounts whose owner can take away what their cards hold in the wallet. */
async function accountsAtRisk(
  database: Connection,
  { chain, at }: { chain: string; at: Date },
): Promise<readonly string[]> {
  const rows = await database.call<{ account_id: string }>(
    {
      name: 'card_accounts_at_risk',
      text: `select distinct a.account_id
        from card_authorization a join card_hold h on h.authorization_id = a.id and h.place = $1 and h.units > 0
          join wallet w on w.account_id = a.account_id and w.owner->>'kind' <> 'gateway'
        where a.status = 'pending' and not exists (
          select from card_pull p
          where p.account_id = a.account_id and p.place = $1 and p.status = 'released' and p.ended_at > $2)
        limit $3`,
    },
    [chain, new Date(at.getTime() - PAUSE_MS), BATCH],
  )
  return rows.map(({ account_id }) => account_id)
}

interface UnsentRow extends ContentRow {
  readonly decision_id: string
  readonly owner: string
  readonly place: string
  readonly asset: string
  readonly units: bigint
  readonly mac: string | null
  readonly is_ours: boolean
}

/** Pulls that nothing was sent for, and that this gateway has decided. Any other raises an alarm and is not sent. */
async function unsentPulls(
  { database, chain, log, settings }: EscrowParts,
  at: Date,
): Promise<readonly (BegunPull & { authorizedBy: TransferAuthorization })[]> {
  const rows = await database.call<UnsentRow>(
    {
      name: 'card_pulls_unsent',
      text: `select p.decision_id, p.account_id as owner, p.place, p.asset, p.units, d.mac,
          w.owner->>'kind' = 'gateway' as is_ours, ${contentColumns}
        from card_pull p join decision d on d.id = p.decision_id join wallet w on w.account_id = p.account_id
        where p.status = 'open' and p.place = $1 and not exists (select from transfer t where t.decision_id = p.decision_id)
          and not exists (select from alarm a where a.domain = 'cards' and a.object_id = p.decision_id and a.resolved_at is null)
        order by p.decision_id limit $2`,
    },
    [chain.name, BATCH],
  )
  const kept: (BegunPull & { authorizedBy: TransferAuthorization })[] = []
  for (const row of rows) {
    const { decision_id: decisionId, owner: accountId, place, units } = row
    const content = toContent(row)
    const decided = Object(content.facts)
    const isOurs =
      isAuthentic(settings.dataKey, content, row.mac) &&
      content.operation === 'cards.pull' &&
      content.accountId === accountId &&
      decided.chain === place &&
      decided.asset === row.asset &&
      decided.units === units.toString()
    if (isOurs)
      kept.push({
        ...{ accountId, decisionId, asset: parseStablecoin(row.asset), units },
        authorizedBy: row.is_ours ? byOwner : byAllowance,
      })
    else
      await raiseAlarm(
        { database, log },
        {
          ...{ domain: 'cards', objectId: decisionId, reason: 'pull_not_authentic', at },
          reported: { asset: row.asset, units: units.toString() },
        },
      )
  }
  return kept
}

interface IdleEscrow {
  readonly account_id: string
  readonly escrow: string
  readonly escrow_mac: string
  readonly address: string
  readonly asset: string
}

/** Escrows with money that no purchase holds, one row for each asset. */
function idleEscrows({ database, chain }: EscrowParts, at: Date): Promise<readonly IdleEscrow[]> {
  return database.call<IdleEscrow>(
    {
      name: 'card_escrows_idle',
      text: `select w.account_id, w.escrow, w.escrow_mac, w.address, b.asset
        from wallet w join balance b on b.account = w.account_id || ':escrow.' || $1 || ':available' and b.units > 0
        where w.escrow is not null and not exists (
            select from card_pull p where p.account_id = w.account_id and (p.ended_at is null or p.ended_at > $2))
          and not exists (select from debt d where d.account_id = w.account_id and d.owed > 0)
          and not exists (select from alarm a where a.domain = 'cards' and a.object_id = w.escrow and a.resolved_at is null)
        limit $3`,
    },
    [chain.name, new Date(at.getTime() - STAYS_MS), BATCH],
  )
}

async function giveBack(
  parts: EscrowParts,
  { account_id: accountId, escrow, escrow_mac, address, asset }: IdleEscrow,
): Promise<boolean> {
  const { database, chain, clock, newId, vouch, settings } = parts
  const at = clock()
  if (escrow_mac !== escrowMac(settings.dataKey, { accountId, escrow, home: address })) {
    const alarm = { domain: 'cards', objectId: escrow, reason: 'home_not_authentic', at } as const
    await raiseAlarm(parts, { ...alarm, reported: { accountId, address } })
    return false
  }
  const decisionId = newId('dec', at)
  const units = await database.transaction(async (connection) => {
    const row = await callForRow<{ units: bigint | null; made: readonly MadeRow[] }>(
      connection,
      {
        name: 'card_return_begin',
        text: 'select r.units, decisions_made(array[$1]) as made from card_return_begin($1, $2, $3, $4, $5, $6) r (units)',
      },
      [decisionId, accountId, chain.name, asset, new Date(at.getTime() - STAYS_MS), at],
    )
    if (row.units !== null) await vouch(connection, row.made)
    return row.units
  })
  if (units === null) return false
  await sendTransfer(parts, {
    ...{ authorizedBy: byOwner, accountId, decisionId, token: parseStablecoin(asset), units },
    payer: 'escrow',
    destination: lowerCase(`0x${address.slice(2)}`),
    at,
  }).catch((err: unknown) => logOpen(parts, decisionId, err))
  return true
}

/** Reads what an account's escrow has, in smallest units by chain and asset: held and available. */
export async function readEscrow(
  database: Connection,
  accountId: string,
): Promise<readonly { readonly chain: string; readonly asset: Stablecoin; readonly units: bigint }[]> {
  const rows = await balances(database, accountId)
  return rows
    .filter(({ place, available, held }) => place.startsWith(ESCROW) && available + held > 0n)
    .map(({ place, asset, available, held }) => ({
      chain: place.slice(ESCROW.length),
      asset: parseStablecoin(asset),
      units: available + held,
    }))
}

/**
 * Requires that the gateway has promised nothing of an account's wallet before the wallet changes hands. Money that its cards
 * hold is pulled to the escrow first. Call it before anything else is written.
 * @throws Failure `wallet_busy`.
 */
export async function requireIdleWallet(
  parts: Omit<BeginningParts, 'chain'> & EveryChain<BeginningParts['chain']> & { readonly now: Date },
  accountId: string,
): Promise<void> {
  if (!(await isWalletBusy(parts.database, accountId))) return
  for (const chain of parts.chains.all) await beginPullsOfHolds({ ...parts, chain }, accountId, parts.now)
  throw walletBusy({ isCommitted: true })
}
