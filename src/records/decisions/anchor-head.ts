/**
 * Anchors the decision chain: once a UTC day, its head goes into a transaction from the sponsor to itself, so that whoever rewrites the
 * chain later, with every key of the gateway, contradicts a block. The head is fixed in the database first, and every transaction
 * recorded before it is broadcast: a gateway that ends between two steps leaves behind what the next needs to look it up. Should a
 * transaction that was taken for lost be mined after all, a day has two, with one head.
 */
import { type Clock, utcDay } from '../../core/base/clock.ts'
import { randomToken } from '../../core/base/ids.ts'
import type { Log } from '../../core/base/log.ts'
import type { ChainName } from '../../core/money/chains.ts'
import type { Address, Chain, Hex } from '../../providers/chain/port.ts'
import type { Database } from '../../storage/database.ts'
import {
  type Anchor,
  claimAnchor,
  confirmAnchor,
  missAnchor,
  prepareAnchor,
  readDueAnchors,
  recordAnchorSent,
  releaseAnchor,
} from './anchor-store.ts'

const TAG = 'bursar-anchor/1'
const DAY_MS = 86_400_000

/** Time after midnight in which the day's last decisions are sealed. */
const SEALING_MS = 5 * 60_000

/** Longest time of one attempt, after which another may begin. */
const ATTEMPT_MS = 2 * 60_000

/** A transaction that is on the chain nowhere this long after it was recorded is taken for lost. */
const LOST_MS = 10 * 60_000

/** Time after a day's end in which its anchor is sent. Verifiers refuse one that is two days late. */
const SENDING_MS = 36 * 3_600_000

export interface AnchoringParts {
  readonly database: Database
  readonly chain: Pick<
    Chain,
    'name' | 'isGasFree' | 'confirmations' | 'signer' | 'transaction' | 'blockNumber'
  >
  readonly clock: Clock
  /** Decisions have the calendar's time. */
  readonly onCalendar: (at: Date) => Date
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly settings: { readonly anchorChain: ChainName | null }
}

/** Calldata of an anchor: the tag in ASCII, the 32 bytes of the hash, and the sequence as 8 bytes, big-endian. */
export function encodeAnchor({ sequence, hash }: Pick<Anchor, 'sequence' | 'hash'>): Hex {
  return `0x${Buffer.from(TAG).toString('hex')}${hash}${sequence.toString(16).padStart(16, '0')}`
}

/** Anchors the last day that has ended, and finishes what earlier rounds left. Does nothing for a chain that is not the anchors'. */
export async function anchorHead(parts: AnchoringParts, signal: AbortSignal): Promise<number> {
  const { database, chain, clock, onCalendar, settings } = parts
  if (settings.anchorChain !== chain.name) return 0
  const day = utcDay(new Date(onCalendar(clock()).getTime() - SEALING_MS - DAY_MS))
  let due = await readDueAnchors(database, chain.name, day)
  if (!due.some((anchor) => anchor.day === day)) {
    await prepareAnchor(database, { day, chain: chain.name, end: findEnd(day), at: clock() })
    due = await readDueAnchors(database, chain.name, day)
  }
  for (const anchor of due) {
    if (signal.aborted) break
    if (anchor.chain === chain.name && isOpen(anchor)) await advance(parts, anchor)
  }
  return 0
}

async function advance(parts: AnchoringParts, anchor: Anchor): Promise<void> {
  const { database, chain, clock, onCalendar, log } = parts
  const { day, sentAt } = anchor
  const found = await findMined(chain, anchor)
  if (found !== undefined) {
    if (!found.isFinal) return
    const { hash, sender } = found
    await confirmAnchor(database, day, { hash, sender, at: clock() })
    log.info(
      { day, chain: chain.name, transaction: found.hash },
      'the head of the decision chain is anchored',
    )
    return
  }
  if (sentAt !== null && clock().getTime() < sentAt.getTime() + LOST_MS) return
  if (onCalendar(clock()).getTime() > findEnd(day).getTime() + SENDING_MS) {
    await missAnchor(database, anchor)
    log.warn({ day, chain: chain.name }, 'the head of this day was not anchored in time')
    return
  }
  await send(parts, anchor)
}

async function findMined(
  chain: AnchoringParts['chain'],
  { transactionHashes, ...head }: Anchor,
): Promise<{ readonly hash: Hex; readonly sender: Address | null; readonly isFinal: boolean } | undefined> {
  const mined = await Promise.all(transactionHashes.map((hash) => chain.transaction(hash)))
  const one = mined.find((it) => it?.succeeded && it.calldata === encodeAnchor(head))
  if (one === undefined) return undefined
  const { hash, blockNumber, sender = null } = one
  return {
    hash,
    // With another sponsor's key since, the last attempt was not its own.
    sender,
    isFinal: chain.isGasFree || (await chain.blockNumber()) >= blockNumber + chain.confirmations,
  }
}

async function send({ database, chain, clock, log }: AnchoringParts, anchor: Anchor): Promise<void> {
  const { day } = anchor
  const { address } = chain.signer
  const attempt = randomToken(16)
  const until = new Date(clock().getTime() + ATTEMPT_MS)
  if (!(await claimAnchor(database, anchor, { attempt, until, sender: address, at: clock() }))) return
  let isSending = true
  try {
    await chain.signer.sendTransaction({
      to: address,
      data: encodeAnchor(anchor),
      beforeBroadcast: async (hash) => {
        // Later calls replace the transaction at a higher price: with its nonce, only one of them is mined.
        const holder = isSending ? attempt : null
        if (!(await recordAnchorSent(database, day, { attempt: holder, hash, at: clock() })))
          throw new Error(`Another gateway anchors ${day}.`)
      },
    })
  } catch (err) {
    log.warn({ err, day, chain: chain.name }, 'an anchor was perhaps not sent; it is looked up later')
  } finally {
    isSending = false
    await releaseAnchor(database, day, attempt)
  }
}

function isOpen({ state }: Anchor): boolean {
  return state === 'prepared' || state === 'sent'
}

function findEnd(day: string): Date {
  return new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS)
}
