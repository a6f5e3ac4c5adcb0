/**
 * USDC on its way to another chain. What was burned is booked from the transfer to the desk, and lies in a place of its own until the
 * mint's logs are booked. The attester's word is compared with the burn's own message; anybody may mint, so that a mint which somebody
 * else has made is as good. Nothing here fails for good: what is not attested or minted stays `bridging`.
 */
import { available, bridgePlace, external, held } from '../../books/ledger/accounts.ts'
import { lockUnits } from '../../books/ledger/balances.ts'
import { type Posting, post } from '../../books/ledger/post.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { isChainName } from '../../core/money/chains.ts'
import { minimum } from '../../core/money/shares.ts'
import type { Attester } from '../../providers/attester/port.ts'
import {
  type BurnMessage,
  cctpAbi,
  cctpOn,
  findMint,
  isFromMessenger,
  isSameBurn,
  parseBurnBody,
  parseBurnMessage,
} from '../../providers/cctp.ts'
import type { Chains } from '../../providers/chain/chains.ts'
import {
  type Chain,
  type Hex,
  isRefusedCall,
  type SentMessage,
  tokenAddress,
} from '../../providers/chain/port.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { lowerCase, type Transfer, toOperation } from '../wallets/store.ts'
import {
  beginBridge,
  claimMint,
  dropAttestation,
  endBridge,
  lockMinted,
  postponeBridge,
  recordAttestation,
  reopenBridge,
  unclaimMint,
} from './bridge-orders.ts'
import { holdForPayment } from './fundings.ts'
import { findSwap, findTransferOfSwap, type SwapOrder } from './orders.ts'

/** @property attester null: none is configured any more; what is on its way waits. */
export interface BridgeDependencies {
  readonly database: Database
  readonly chain: Pick<
    Chain,
    'name' | 'tokens' | 'bridgeDesk' | 'transaction' | 'hashOperation' | 'walletAddress'
  >
  readonly chains: Chains
  readonly attester: Attester | null
  readonly clock: Clock
  readonly log: Log
}

type BridgeOrder = SwapOrder & { readonly toChain: string }

export function isBridge(swap: SwapOrder): swap is BridgeOrder {
  return swap.toChain !== null
}

/** Books that the burn is on its way, from the transfer that was confirmed in a transaction. */
export async function bookBurn(
  { database, chain, clock }: Pick<BridgeDependencies, 'database' | 'chain' | 'clock'>,
  { id, accountId, sell, units, toChain }: BridgeOrder,
  { hash, lock }: { readonly hash: Hex; readonly lock: (connection: Connection) => Promise<boolean> },
): Promise<void> {
  const at = clock()
  await database.transaction(async (connection) => {
    if (!(await lock(connection))) return
    if (!(await beginBridge(connection, id, { transactionHash: hash, at }))) return
    await post(connection, {
      ...{ id: `burn:${id}`, kind: 'bridge', reference: id, at },
      postings: [
        {
          source: external(chain.name),
          destination: held(accountId, bridgePlace(toChain)),
          money: { asset: sell, units },
        },
      ],
    })
  })
}

/** Takes an order on its way one or more steps further. Safe to repeat. @returns the order as it is then. */
export async function advanceBridge(parts: BridgeDependencies, swap: BridgeOrder): Promise<SwapOrder> {
  const { database, clock } = parts
  const { decisionId } = swap
  await postponeBridge(database, swap, clock())
  const transfer = await findTransferOfSwap(database, swap)
  if (transfer === undefined) throw new Error(`the transfer of the swap ${swap.id} cannot be read`)
  const attested = swap.bridge.message === null ? await fetchAttestation(parts, swap, transfer) : swap
  if (attested.bridge.nonce !== null) await mintOrFind(parts, attested, transfer)
  return (await findSwap(database, { decisionId })) ?? swap
}

/** Finds the message that a burn's own operation sent; undefined while its transaction is in no block. */
async function findOwnMessage(
  { chain }: Pick<BridgeDependencies, 'chain'>,
  { transactionHash, units, toChain }: BridgeOrder,
  transfer: Transfer,
): Promise<SentMessage | undefined> {
  if (transactionHash === null) return undefined
  const transaction = await chain.transaction(`0x${transactionHash.slice(2)}`)
  if (transaction === undefined) return undefined
  const operation = toOperation(transfer)
  const operationHash = chain.hashOperation(operation)
  const wallet = lowerCase(await chain.walletAddress(operation.wallet))
  const isOwn = ({ message, operationHash: by }: SentMessage) => {
    const parsed = parseBurnMessage(message)
    return (
      by === operationHash &&
      parsed?.burn.recipient === wallet &&
      parsed.burn.units === units &&
      parsed.burn.sender === lowerCase(chain.bridgeDesk) &&
      parsed.destination === domainOf(toChain)
    )
  }
  return transaction.sent.find(isOwn)
}

/** Fetches the attestation, and keeps it if it is of exactly what was burned. @returns the order as it is then. */
async function fetchAttestation(
  parts: BridgeDependencies,
  swap: BridgeOrder,
  transfer: Transfer,
): Promise<BridgeOrder> {
  const { database, chain, attester, clock, log } = parts
  const { id, transactionHash, minReceived, units } = swap
  const own = await findOwnMessage(parts, swap, transfer)
  if (own === undefined || attester === null || transactionHash === null) return swap
  const source = domainOf(chain.name)
  const found = await attester.find({ source, transactionHash: `0x${transactionHash.slice(2)}` })
  for (const { message, attestation } of found) {
    const parsed = parseBurnMessage(message)
    const problem = isSameBurn(message, own.message)
      ? findProblem(parsed, units - minReceived)
      : 'it is not what was burned'
    if (problem !== undefined || parsed === undefined) {
      log.error({ swapId: id, transactionHash, problem }, 'an attested message is refused')
      continue
    }
    const { nonce } = parsed
    if (await recordAttestation(database, id, { message, attestation, nonce, at: clock() }))
      return { ...swap, bridge: { ...swap.bridge, message, attestation, nonce } }
  }
  return swap
}

function findProblem(message: BurnMessage | undefined, maxFee: bigint): string | undefined {
  if (message === undefined) return 'it cannot be read'
  if (BigInt(message.nonce) === 0n) return 'it has no nonce'
  if (message.burn.feeExecuted > maxFee) return 'its fee is above what was agreed'
  return message.finality < message.minFinality ? 'it is less final than was asked for' : undefined
}

/** Books the mint, whoever made it; makes it where nobody has. */
async function mintOrFind(parts: BridgeDependencies, swap: BridgeOrder, transfer: Transfer): Promise<void> {
  const { database, chains, attester, clock, log } = parts
  const { message, attestation, nonce } = swap.bridge
  if (nonce === null) return
  const destination = chains.of(swap.toChain)
  const made = await destination.findDelivery(nonce)
  if (made !== undefined) return bookMint(parts, swap, { transfer, destination, hash: made, nonce })
  if (message === null || attestation === null || !(await claimMint(database, swap.id, clock()))) return
  const { transmitter } = cctpOn(destination.name)
  try {
    await destination.signer.writeContract({
      address: transmitter,
      abi: cctpAbi,
      functionName: 'receiveMessage',
      args: [message, attestation],
    })
  } catch (error) {
    // Unknown: it is looked for, and sent again later.
    if (!isRefusedCall(error)) throw error
    await unclaimMint(database, swap.id)
    const expires = parseBurnMessage(message)?.burn.expirationBlock ?? 0n
    const isExpired = expires > 0n && (await destination.blockNumber()) >= expires
    if (isExpired && attester !== null) {
      await attester.renew(nonce)
      await dropAttestation(database, swap.id)
    }
    log.warn({ swapId: swap.id, isExpired, reason: error.message }, 'the chain refuses a mint for now')
  }
  const hash = await destination.findDelivery(nonce)
  if (hash !== undefined) await bookMint(parts, swap, { transfer, destination, hash, nonce })
}

interface Mint {
  readonly transfer: Transfer
  readonly destination: Chain
  readonly hash: Hex
  readonly nonce: Hex
}

/** Reads what a delivered message minted, from its own logs. @returns undefined where it is not what was burned, or not readable. */
async function readMint(
  { chain }: Pick<BridgeDependencies, 'chain'>,
  swap: BridgeOrder,
  { transfer, destination, hash, nonce }: Mint,
): Promise<{ readonly received: bigint; readonly fee: bigint } | 'absent' | 'different'> {
  const transaction = await destination.transaction(hash)
  const delivered = transaction?.delivered.find((one) => one.nonce === nonce)
  if (transaction === undefined || delivered === undefined) return 'absent'
  const wallet = lowerCase(await destination.walletAddress(toOperation(transfer).wallet))
  const body = parseBurnBody(delivered.body)
  if (body === undefined) return 'different'
  const token = lowerCase(tokenAddress(destination, swap.buy))
  const mint = findMint(transaction.transfers, delivered, { burn: body, token })
  const isAgreed =
    isFromMessenger(delivered, chain.name) &&
    body.recipient === wallet &&
    body.units === swap.units &&
    body.token === lowerCase(tokenAddress(chain, swap.sell)) &&
    mint !== undefined &&
    mint.units >= swap.minReceived
  return isAgreed ? { received: mint.units, fee: body.feeExecuted } : 'different'
}

async function bookMint(parts: BridgeDependencies, swap: BridgeOrder, mint: Mint): Promise<void> {
  const { database, clock, log } = parts
  const { id, accountId, buy, toChain } = swap
  const read = await readMint(parts, swap, mint)
  if (read === 'absent') return
  if (read === 'different') {
    log.error({ swapId: id, transaction: mint.hash }, 'a mint is not what was burned, and is not booked')
    return
  }
  const { received, fee } = read
  const at = clock()
  await database.transaction(async (connection) => {
    const ended = await endBridge(connection, id, { received, mintHash: mint.hash, at })
    if (ended === undefined) return
    const source = held(accountId, bridgePlace(toChain))
    // What a replaced mint brought and was spent is in the books already.
    const brought = received - ended.bridge.lacking
    const kept =
      ended.fundingId === null
        ? 0n
        : await holdForPayment(connection, {
            fundingId: ended.fundingId,
            swapId: id,
            source,
            units: brought,
            at,
          })
    const postings = [
      { destination: available(accountId, toChain), units: brought - kept },
      { destination: external(toChain), units: fee },
    ].flatMap(({ destination, units }): Posting[] =>
      units > 0n ? [{ source, destination, money: { asset: buy, units } }] : [],
    )
    if (postings.length === 0) return
    const { mints } = ended.bridge
    await post(connection, { id: `mint:${id}:${mints}`, kind: 'bridge', reference: id, at, postings })
  })
}

/**
 * Checks that a mint is still where it was booked from, after blocks of its chain were replaced; takes it back where it is not, as far
 * as it is available. It is made or booked again then. @param parts on the chain that it was minted on.
 */
export async function verifyMint(
  {
    database,
    chain,
    clock,
    log,
    requireSameChain,
  }: {
    readonly database: Database
    readonly chain: Pick<Chain, 'name' | 'findDelivery'>
    readonly clock: Clock
    readonly log: Log
    readonly requireSameChain: () => Promise<void>
  },
  { id, accountId, buy, bridge: { nonce, mintHash } }: SwapOrder,
): Promise<void> {
  if (nonce === null || mintHash === null || (await chain.findDelivery(nonce)) === mintHash) return
  await requireSameChain()
  const at = clock()
  await database.transaction(async (connection) => {
    const minted = await lockMinted(connection, id, mintHash)
    if (minted === undefined) return
    const { received, units: burned, bridge } = minted
    const arrived = (received ?? 0n) - bridge.lacking
    const place = available(accountId, chain.name)
    const taken = minimum(await lockUnits(connection, place, buy), arrived)
    const back = held(accountId, bridgePlace(chain.name))
    const postings = [
      { source: place, units: taken },
      { source: external(chain.name), units: burned - (received ?? 0n) },
    ].flatMap(({ source, units }): Posting[] =>
      units > 0n ? [{ source, destination: back, money: { asset: buy, units } }] : [],
    )
    await reopenBridge(connection, id, { lacking: bridge.lacking + arrived - taken, at })
    if (postings.length === 0) return
    const reversal = `mint_reversal:${id}:${bridge.mints}`
    await post(connection, { id: reversal, kind: 'bridge_reversal', reference: id, at, postings })
  })
  log.warn(
    { swapId: id, transaction: mintHash },
    'the chain lost a mint; what was burned is on its way again',
  )
}

/** @throws Error for a name that is no chain's. */
function domainOf(name: string): number {
  if (!isChainName(name)) throw new Error(`The chain ${name} is unknown.`)
  return cctpOn(name).domain
}
