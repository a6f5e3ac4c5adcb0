/** Returns the money of an idle purse to the wallet. The purse signs, the sponsor pays the gas. */
import { sql } from 'kysely'
import { keccak256, stringToHex } from 'viem'
import { type PurchaseOutcome, purchaseOutcome } from '../../books/evidence/purchase-outcome.ts'
import { available, held, pursePlace } from '../../books/ledger/accounts.ts'
import { lockUnits } from '../../books/ledger/balances.ts'
import { post } from '../../books/ledger/post.ts'
import type { NewId } from '../../core/base/ids.ts'
import { type Chain, type Hex, tokenAddress } from '../../providers/chain/port.ts'
import { cancelAuthorization, executePayment, purseKey, signPayment } from './authorization.ts'
import type { PayingParts } from './pay-purchase.ts'
import { findPurseLack } from './purse-books.ts'
import { isPurseOn, purseMac, toHex } from './store.ts'
import { type PayableAsset, payableAssets } from './terms.ts'

/** How long a sweep may take before it is given up and begun anew. */
const VALID_SECONDS = 300
/** How long a purse keeps its money after a purchase, because the next may follow. */
const IDLE_MS = 40_000
const BATCH = 50

export interface SweepingParts extends PayingParts {
  readonly newId: NewId
}

interface IdlePurse {
  readonly id: string
  readonly account_id: string
  readonly asset: PayableAsset
}

/**
 * Purses of the chain with money, and without an open sweep, that pay for nothing: of keys that were revoked or have expired, of accounts that
 * owe a debt, and those whose last purchase has ended; an agent's keeps its money for a while.
 */
async function idlePurses(
  { database, chain }: PayingParts,
  { at, after }: { at: Date; after: string },
): Promise<readonly IdlePurse[]> {
  const { rows } = await sql<IdlePurse>`
    select p.id, p.account_id, b.asset
    from purse p left join access_key k on k.id = p.id
      join balance b on b.account = p.account_id || ':purse.' || p.id || ':available' and b.units > 0
    where (
        k.status = 'revoked' or k.expires_at <= ${at}
        or exists (select from debt d where d.account_id = p.account_id and d.owed > 0)
        or not exists (
          select from purchase o where o.account_id = p.account_id and o.purse_id = p.id
            and (o.state in ('reserved', 'signed') or k.id is not null and o.updated_at > ${new Date(at.getTime() - IDLE_MS)}))
      ) and ${isPurseOn('p', chain.name)} and b.asset = any(${[...payableAssets]})
      -- What is in a channel comes back to its address first.
      and not exists (select from channel c where c.id = p.id and c.status <> 'closed') and p.id || b.asset > ${after}
      and not exists (select from purse_sweep s where s.purse_id = p.id and s.asset = b.asset and s.state = 'open')
    order by p.id || b.asset limit ${BATCH}`.execute(database.kysely)
  return rows
}

/** Begins to sweep up to {@link BATCH} purses; those whose money is not on the chain take nobody's place. */
async function beginSweeps(parts: SweepingParts, signal: AbortSignal): Promise<void> {
  let begun = 0
  let after = ''
  while (begun < BATCH && !signal.aborted) {
    const purses = await idlePurses(parts, { at: parts.clock(), after })
    for (const purse of purses) if (await beginSweep(parts, purse)) begun += 1
    const last = purses.at(-1)
    if (last === undefined || purses.length < BATCH) return
    after = last.id + last.asset
  }
}

/** Runs one round. @returns the number of sweeps that it worked on. */
export async function sweepPurses(parts: SweepingParts, signal: AbortSignal): Promise<number> {
  const { clock, log } = parts
  await beginSweeps(parts, signal)
  const open = await nextSweeps(parts, clock())
  for (const sweep of open) {
    if (signal.aborted) break
    await finishSweep(parts, sweep).catch((err: unknown) =>
      log.warn({ err, sweepId: sweep.id }, 'sweeping a purse failed'),
    )
  }
  return open.length
}

/** Open sweeps that have waited the longest: one that the chain refuses for ever comes last in the next round. */
function nextSweeps(
  { database: { kysely }, chain }: Pick<PayingParts, 'database' | 'chain'>,
  at: Date,
): Promise<Sweep[]> {
  return kysely
    .updateTable('purse_sweep')
    .from('purse')
    .set({ tried_at: at })
    .whereRef('purse.id', '=', 'purse_sweep.purse_id')
    .where('purse_sweep.id', 'in', (query) =>
      query
        .selectFrom('purse_sweep')
        .innerJoin('purse', 'purse.id', 'purse_sweep.purse_id')
        .select('purse_sweep.id')
        .where('purse_sweep.state', '=', 'open')
        .where(isPurseOn('purse', chain.name))
        .orderBy('tried_at')
        .orderBy('purse_sweep.id')
        .limit(BATCH),
    )
    .returningAll('purse_sweep')
    .returning(['purse.account_id', 'purse.address', 'purse.home', 'purse.mac'])
    .execute()
}

/**
 * Holds the money and writes the sweep, in one transaction, before anything is signed. What a replaced block took from the purse
 * is left out: the chain would refuse all of it, and the transfer that filled the purse is reversed from what is available.
 * @returns whether it began.
 */
async function beginSweep(parts: SweepingParts, purse: IdlePurse): Promise<boolean> {
  const { database, chain, newId, clock } = parts
  const { id: purseId, account_id: accountId, asset } = purse
  const lack = await findPurseLack(parts, purse)
  const at = clock()
  const sinceBlock = await chain.blockNumber()
  const id = newId('swp', at)
  const place = pursePlace(purseId)
  return database.transaction(async (connection) => {
    const units = (await lockUnits(connection, available(accountId, place), asset)) - lack
    if (units <= 0n) return false
    const inserted = await connection.kysely
      .insertInto('purse_sweep')
      .values({
        id,
        purse_id: purseId,
        asset,
        units,
        nonce: keccak256(stringToHex(`bursar sweep ${id}`)),
        valid_before: new Date((Math.floor(at.getTime() / 1000) + VALID_SECONDS) * 1000),
        since_block: sinceBlock,
        created_at: at,
      })
      .onConflict((conflict) => conflict.doNothing())
      .returning('id')
      .executeTakeFirst()
    if (inserted === undefined) return false
    await post(connection, {
      id: `sweep:${id}:hold`,
      kind: 'purse_sweep',
      reference: id,
      at,
      postings: [
        { source: available(accountId, place), destination: held(accountId, place), money: { asset, units } },
      ],
    })
    return true
  })
}

export interface Sweep {
  readonly id: string
  readonly purse_id: string
  readonly account_id: string
  readonly address: string
  readonly home: string
  readonly mac: string
  readonly asset: string
  readonly units: bigint
  readonly nonce: string
  readonly valid_before: Date
}

interface Sealed {
  readonly settings: Pick<PayingParts['settings'], 'dataKey'>
}

/** What a sweep moves, and where to. @throws when no gateway has written it so. */
export function readSweep(
  { settings }: Sealed,
  sweep: Sweep,
): { readonly asset: PayableAsset; readonly to: Hex } {
  const asset = payableAssets.find((symbol) => symbol === sweep.asset)
  const to = toHex(sweep.home)
  const mac = purseMac(settings.dataKey, { id: sweep.purse_id, accountId: sweep.account_id, home: to })
  if (asset === undefined || mac !== sweep.mac)
    throw new Error(`no gateway has written where ${sweep.id} goes`)
  return { asset, to }
}

async function finishSweep(parts: SweepingParts, sweep: Sweep): Promise<void> {
  const { chain, settings } = parts
  const { asset, to } = readSweep(parts, sweep)
  const first = await findSweepOutcome(chain, sweep, { asset, to })
  if (first.status === 'canceling') return
  if (first.status !== 'open') return endSweep(parts, sweep, { asset, isPaid: first.status === 'settled' })
  if (parts.clock() >= sweep.valid_before)
    return cancelAuthorization(chain, purseKey(settings.dataKey, sweep.purse_id), {
      asset,
      nonce: toHex(sweep.nonce),
    })
  await executeSweep(parts, sweep, { asset, to })
  const { status } = await findSweepOutcome(chain, sweep, { asset, to })
  if (status === 'settled') await endSweep(parts, sweep, { asset, isPaid: true })
}

/** Executes the one authorization of a sweep. @throws when the token refuses, as it does once it was used. */
export async function executeSweep(
  { chain, settings }: Sealed & Pick<PayingParts, 'chain'>,
  sweep: Sweep,
  { asset, to }: { asset: PayableAsset; to: Hex },
): Promise<void> {
  const account = purseKey(settings.dataKey, sweep.purse_id)
  const message = {
    from: account.address,
    to,
    value: sweep.units,
    validAfter: 0n,
    validBefore: BigInt(sweep.valid_before.getTime() / 1000),
    nonce: toHex(sweep.nonce),
  }
  const signature = await signPayment(chain, account, { asset, message })
  await executePayment(chain, { asset, message, signature })
}

export function findSweepOutcome(
  chain: Chain,
  { address, units, nonce, valid_before: validBefore }: Sweep,
  { asset, to }: { asset: PayableAsset; to: Hex },
): Promise<PurchaseOutcome> {
  const from = toHex(address)
  return purchaseOutcome(chain, {
    scheme: 'exact',
    token: tokenAddress(chain, asset),
    from,
    to,
    units,
    nonce: toHex(nonce),
    validBefore,
  })
}

/** Books the end of a sweep once: to the wallet, or back to the purse. */
async function endSweep(
  { database, chain, clock }: PayingParts,
  { id, purse_id: purseId, account_id: accountId, units }: Sweep,
  { asset, isPaid }: { asset: PayableAsset; isPaid: boolean },
): Promise<void> {
  const at = clock()
  await database.transaction(async (connection) => {
    const ended = await connection.kysely
      .updateTable('purse_sweep')
      .set({ state: isPaid ? 'settled' : 'released' })
      .where('id', '=', id)
      .where('state', '=', 'open')
      .returning('id')
      .executeTakeFirst()
    if (ended === undefined) return
    const source = held(accountId, pursePlace(purseId))
    const destination = available(accountId, isPaid ? chain.name : pursePlace(purseId))
    await post(connection, {
      id: `sweep:${id}:end`,
      kind: 'purse_sweep',
      reference: id,
      at,
      postings: [{ source, destination, money: { asset, units } }],
    })
  })
}
