/**
 * Replaces the gateway's key as the owner of its Safes, on one chain: wallets that are not handed over, escrows of cards, and the Safe
 * that spends allowances. Each change is an operation of that Safe, signed and kept before it is sent. What the chain shows in a block
 * that can no longer change is booked, never what was sent: a change that a reorganization takes away is sent again, without the
 * former key. A Safe that is not deployed keeps its signed change for the deployment; with money in it, it is deployed at once.
 */
import { raiseAlarm } from '../../../books/alarms/alarms.ts'
import type { Clock } from '../../../core/base/clock.ts'
import { randomToken } from '../../../core/base/ids.ts'
import type { Log } from '../../../core/base/log.ts'
import { timers } from '../../../core/base/timers.ts'
import {
  type Address,
  type AuthorizedOperation,
  type Chain,
  type SafeState,
  type SignedSwap,
  SWAP_VALID_UNTIL,
  swapId,
  type Wallet,
} from '../../../providers/chain/port.ts'
import type { Database } from '../../../storage/database.ts'
import { findOwnedWallet } from '../store.ts'
import {
  dropSwap,
  enlistSafes,
  findSwaps,
  finishRotation,
  isBehindTransfers,
  keepSwap,
  type OwnerSwap,
  readRotations,
  readWatchedChains,
  recordSwap,
  takeSwaps,
  wakeSafes,
} from './owner-store.ts'

/** Changes of one round: as many as one bundle takes. */
const BATCH = 20
/** Rows that one round gives to Safes. */
const ENLISTED = 500
/** Pauses between searches for Safes without a row, while the replacement is open and after it. */
const SEARCH_MS = 3_000
const SEARCH_FINISHED_MS = 600_000
/** Safes without a deployment that one round looks through. */
const WAKE_PAGE = 500
/** Longest time that one gateway works on a change before another may. */
const TAKEN_MS = 60_000
/** Pause before a change that was sent, or waits for transfers, is looked at again. */
const LOOK_MS = 3_000
/** Pause after a failure. */
const RETRY_MS = 30_000
/** Pause for a Safe whose former key is not here. Gauge and doctor count it. */
const MISSING_MS = 600_000
/** Longest time that a change waits for open transfers. Those whose signatures it outruns are signed again. */
const BEHIND_MS = 60_000

export interface OwnerParts {
  readonly database: Database
  readonly chain: Chain
  readonly chains: { readonly all: readonly Chain[]; readonly absent: readonly string[] }
  readonly clock: Clock
  readonly log: Log
}

/** Creates the round of a chain. @returns the number of Safes that were looked at. */
export function createSwapOwners(parts: OwnerParts): (signal: AbortSignal) => Promise<number> {
  const { database, chain, clock } = parts
  let after = ''
  let enlistAt = Number.NEGATIVE_INFINITY
  return async (signal) => {
    const to = chain.gatewayKeys?.current
    // No key was ever replaced.
    if (to === undefined || (chain.gatewayKeys?.previous === null && chain.opensWith === null)) return 0
    const rotations = await readRotations(database)
    const rotation = rotations.find((one) => one.to === to)
    // Where another gateway replaces this key already, its Safes go on to the next one, never back.
    if (rotation === undefined || rotations.some(({ from }) => from === to)) return 0
    const { name } = chain
    const isSearching = timers.monotonic() >= enlistAt
    if (isSearching) {
      const delegate = await chain.walletAddress(chain.delegate)
      const found = await enlistSafes(database, { chain: name, to, delegate, limit: ENLISTED, at: clock() })
      // All wallets are compared, so that this is not asked in every round.
      if (found === 0) enlistAt = timers.monotonic() + (rotation.isFinished ? SEARCH_FINISHED_MS : SEARCH_MS)
    }
    after = await wakeSafes(database, { chain: name, to, after, limit: WAKE_PAGE, at: clock() })
    const until = new Date(clock().getTime() + TAKEN_MS)
    const taken = await takeSwaps(database, { chain: name, to, until, at: clock(), limit: BATCH })
    if (!signal.aborted) await Promise.all(taken.map((one) => advance(parts, one)))
    if (taken.length === 0 && isSearching && !rotation.isFinished) await finish(parts, to)
    return taken.length
  }
}

async function advance(parts: OwnerParts, row: OwnerSwap): Promise<void> {
  const { database, clock, log, chain } = parts
  try {
    await look(parts, row)
  } catch (err) {
    log.warn(
      { err, chain: chain.name, safe: row.address },
      'the owner of a smart account was not replaced yet',
    )
    await recordSwap(database, row, { dueAt: later(clock, RETRY_MS), at: clock() })
  }
}

async function look(parts: OwnerParts, row: OwnerSwap): Promise<void> {
  const { database, chain, clock } = parts
  const wallet = row.wallet ?? chain.delegate
  if ((await chain.walletAddress(wallet)).toLowerCase() !== row.address)
    throw new Error(`The address ${row.address} is not that of its wallet.`)
  const latest = await chain.readSafe(wallet, 'latest')
  if (latest === null) {
    const isGone = (await chain.readSafe(wallet, 'final')) !== null
    return isGone ? lookLater(parts, row) : keepForDeployment(parts, row, wallet)
  }
  const owner = findOwner(latest)
  if (!latest.isPersons && owner !== undefined && owner !== row.to) return swap(parts, row, { wallet, owner })
  const final = await chain.readSafe(wallet, 'final')
  const book = (state: 'swapped' | 'given' | 'foreign') =>
    recordSwap(database, row, { state, owner: owner ?? null, dueAt: clock(), at: clock() })
  if (hasGiven(latest)) return final !== null && hasGiven(final) ? book('given') : lookLater(parts, row)
  if (owner !== undefined)
    return final !== null && findOwner(final) === row.to ? book('swapped') : lookLater(parts, row, owner)
  // Its person may have got it since this row was read.
  const isGiven =
    !row.isEscrow &&
    row.accountId !== null &&
    (await findOwnedWallet(database, row.accountId))?.owner.kind !== wallet.owner.kind
  const isOther = final === null || findOwner(final) !== undefined || hasGiven(final)
  if (isOther || isGiven) return lookLater(parts, row)
  await raiseAlarm(parts, {
    ...{ domain: 'audit', objectId: row.address, reason: 'foreign_owner', at: clock() },
    reported: { chain: chain.name, owners: [...latest.owners], hasOtherModules: latest.hasOtherModules },
  })
  return book('foreign')
}

/** The gateway's key that alone owns a Safe; undefined where somebody else can act for it, too. */
function findOwner({ owners: [owner, ...others], hasOtherModules, isOurs }: SafeState): Address | undefined {
  return isOurs && others.length === 0 && !hasOtherModules ? owner : undefined
}

/** Its person has it, and no key of the gateway is left beside: whoever has that key could still spend. */
function hasGiven({ isPersons, isOurs }: SafeState): boolean {
  return isPersons && !isOurs
}

function hasKey({ gatewayKeys }: Chain, key: Address): boolean {
  return gatewayKeys?.current === key || gatewayKeys?.previous === key
}

function waitForKey({ database, clock }: OwnerParts, row: OwnerSwap, owner: Address): Promise<void> {
  return recordSwap(database, row, { owner, dueAt: later(clock, MISSING_MS), at: clock() })
}

function lookLater({ database, clock }: OwnerParts, row: OwnerSwap, owner?: Address): Promise<void> {
  return recordSwap(database, row, {
    ...(owner === undefined ? {} : { owner }),
    dueAt: later(clock, LOOK_MS),
    at: clock(),
  })
}

/** Keeps the change of a Safe that is not deployed; deploys it if there is money in it. */
async function keepForDeployment(parts: OwnerParts, row: OwnerSwap, wallet: Wallet): Promise<void> {
  const { database, chain, clock } = parts
  const kept = await findSwaps(database, { chain: chain.name, safe: toHexAddress(row.address) })
  const first = findFirst(chain, wallet)
  if (first === undefined) throw new Error('A Safe whose first owner is a person has no key to be replaced.')
  const owner = follow(kept, first, row.to)
  if (owner !== row.to && !hasKey(chain, owner)) return waitForKey(parts, row, owner)
  const ready =
    owner === row.to || (await sign(parts, row, { wallet, from: owner, attempt: row.attempt })) !== null
  if (!ready) return lookLater(parts, row)
  const way = kept.find(({ from }) => from === first) ?? null
  if (row.hasMoney)
    return way === null ? lookLater(parts, row, first) : send(parts, row, { wallet, swap: way, owner: first })
  return recordSwap(database, row, { state: 'ready', owner: row.to, dueAt: clock(), at: clock() })
}

/** Sends the change of a deployed Safe that has a former key. */
async function swap(
  parts: OwnerParts,
  row: OwnerSwap,
  { wallet, owner }: { wallet: Wallet; owner: Address },
): Promise<void> {
  const { database, chain, clock } = parts
  const kept = await findSwaps(database, { chain: chain.name, safe: toHexAddress(row.address) })
  const own = row.swap?.from === owner ? row.swap : undefined
  let next = own ?? kept.find(({ from }) => from === owner) ?? null
  if (next === null && !hasKey(chain, owner)) return waitForKey(parts, row, owner)
  if (next !== null) {
    const operation = toOperation(wallet, next)
    const execution = await chain.awaitExecution(operation, 0)
    if (execution.status === 'pending') return lookLater(parts, row, owner)
    if (execution.status === 'executed') {
      const now = await chain.readSafe(wallet, 'latest')
      const isSame = now !== null && findOwner(now) === owner
      // Whoever has the former key can use a nonce for something else.
      const isDone = execution.succeeded && execution.operationHash === chain.hashOperation(operation)
      // What is known of its execution is of a block that was replaced.
      if (isSame && isDone) await chain.forget()
      if (!isSame || isDone) return lookLater(parts, row, owner)
      // It reverted, or its nonce is used for another operation: it never will be executed.
      const isOwn = next.id === row.swap?.id && next.to === row.to
      if (!hasKey(chain, owner)) {
        if (isOwn) await dropSwap(database, row, { id: next.id, at: clock() })
        return waitForKey(parts, row, owner)
      }
      next = await sign(parts, row, { wallet, from: owner, attempt: row.attempt + (isOwn ? 1 : 0) })
    }
  } else next = await sign(parts, row, { wallet, from: owner, attempt: row.attempt })
  if (next === null) return lookLater(parts, row, owner)
  const waitsUntil = row.createdAt.getTime() + BEHIND_MS
  if (clock().getTime() < waitsUntil && (await isBehindTransfers(database, row)))
    return lookLater(parts, row, owner)
  return send(parts, row, { wallet, swap: next, owner })
}

async function send(
  { database, chain, clock, log }: OwnerParts,
  row: OwnerSwap,
  { wallet, swap, owner }: { wallet: Wallet; swap: SignedSwap; owner: Address },
): Promise<void> {
  const isOwn = swap.to === row.to
  await recordSwap(database, row, {
    ...(isOwn ? { state: 'sent' } : {}),
    ...{ owner, dueAt: later(clock, TAKEN_MS), at: clock() },
  })
  const submission = await chain.submit(toOperation(wallet, swap))
  if (submission.status === 'refused')
    log.warn(
      { chain: chain.name, safe: row.address, reason: submission.reason },
      'the chain rejected the change of an owner, which is looked at again',
    )
  await recordSwap(database, row, {
    ...(submission.status === 'submitted' && isOwn ? { transactionHash: submission.transactionHash } : {}),
    dueAt: later(clock, LOOK_MS),
    at: clock(),
  })
}

/**
 * Signs a change, and keeps it before anything is sent. @returns null when another gateway has kept one since.
 * @throws Error when the key is not here: a Safe without a way to a key of this gateway waits for CHAIN_OWNER_KEY_PREVIOUS.
 */
async function sign(
  { database, chain, clock }: OwnerParts,
  row: OwnerSwap,
  { wallet, from, attempt }: { wallet: Wallet; from: Address; attempt: number },
): Promise<SignedSwap | null> {
  // Another attempt has an id that nobody can guess, whose nonce would be used up before.
  const id = swapId({ from, to: row.to }, attempt === 0 ? undefined : `${attempt} ${randomToken(16)}`)
  const unsigned = { id, from, to: row.to }
  const operation = toOperation(wallet, { ...unsigned, signature: '0x' })
  const swap = { ...unsigned, signature: await chain.signAs(from, operation) }
  const hash = chain.hashOperation(operation)
  return (await keepSwap(database, row, { swap, hash, attempt, at: clock() })) ? swap : null
}

function toOperation(wallet: Wallet, { id, from, to, signature }: SignedSwap): AuthorizedOperation {
  return {
    ...{ wallet, id, call: { kind: 'owner', from, to }, validUntil: SWAP_VALID_UNTIL },
    authorization: { kind: 'eoa', signature },
  }
}

/** Follows kept changes from a key. @returns the key that the Safe has after them. */
function follow(kept: readonly SignedSwap[], from: Address, to: Address): Address {
  let owner = from
  for (let step = 0; step < kept.length && owner !== to; step += 1)
    owner = kept.find((swap) => swap.from === owner)?.to ?? owner
  return owner
}

function findFirst(chain: Chain, { origin }: Wallet): Address | undefined {
  return origin.kind === 'gateway' ? (origin.first ?? chain.firstOwner) : undefined
}

/** Ends the replacement if every chain is done: those that are configured, and those that were before. */
async function finish({ database, chains, clock, log }: OwnerParts, to: Address): Promise<void> {
  const local = new Set<string>(chains.all.filter((one) => one.gatewayKeys === null).map(({ name }) => name))
  const here = [...chains.all.map(({ name }) => name), ...chains.absent]
  const all = [...new Set([...here, ...(await readWatchedChains(database))])].filter(
    (name) => !local.has(name),
  )
  if (await finishRotation(database, { to, chains: all, at: clock() }))
    log.info(
      { owner: to, chains: all },
      'no smart account is left with the former owner: CHAIN_OWNER_KEY_PREVIOUS can be removed once every gateway has this CHAIN_OWNER_KEY',
    )
}

function later(clock: Clock, ms: number): Date {
  return new Date(clock().getTime() + ms)
}

function toHexAddress(address: string): Address {
  return `0x${address.slice(2)}`
}
