/** Sessions on public chains, where every contract must already exist. */
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { chains } from '../../core/money/chains.ts'
import type { Address, Hex, TokenAddresses } from '../../providers/chain/port.ts'
import type { ChainKey } from '../../providers/keys/port.ts'
import { toKeyAccount } from '../accounts/key-account.ts'
import { createKeyRing, type KeyRing } from '../accounts/key-ring.ts'
import { createQueuedRelayer } from '../relay/queued-relayer.ts'
import { awaitReceipt } from '../relay/receipts.ts'
import type { Fees, Relayer } from '../relay/relayer.ts'
import { type NodeClient, otherChain, requireChainName } from '../rpc/client.ts'
import { type AccountContracts, commonDeployer, ownContracts } from '../rpc/networks.ts'
import { type EvmSession, openSession } from './evm-session.ts'
import { checkContracts, isOwnContract } from './trusted-contracts.ts'

/** Configuration of a public chain. */
export interface PublicChain {
  /** Environment variable with the node's URL, for messages. */
  readonly variable: string
  readonly contracts: AccountContracts
  readonly tokens: TokenAddresses
  /** Key that pays for every transaction. */
  readonly sponsor: ChainKey | null | undefined
  /** Keys that sign for every Safe; the sponsor's by default. */
  readonly owners: KeyRing | null | undefined
  /** keccak256 of the code that the contracts of x402 may have. */
  readonly x402Hashes: ReadonlySet<Hex>
}

/** Time limit for mining a deployment. */
const DEPLOYMENT_MS = 60_000

/** Cache lifetime of fee estimates. */
const FEES_MS = 4_000

/** Nodes answer up to 10,000 blocks at once. */
const PAGE_BLOCKS = 9_000

/** Time that the search for an operation's event covers: six days. */
const SEARCH_MS = 6 * 24 * 3_600_000

/** Checks all requirements and opens a session. @throws Error listing everything that is missing or different. */
export async function openPublicSession(
  { client, clock, log }: { client: NodeClient; clock: Clock; log: Log },
  { variable, contracts, tokens, sponsor, owners, x402Hashes }: PublicChain,
): Promise<EvmSession> {
  const problems: string[] = []
  const stranger = await otherChain(client, variable)
  if (stranger !== undefined) problems.push(stranger)
  if (!sponsor) problems.push('CHAIN_SPONSOR_KEY is missing: it pays for gas')
  for (const found of stranger === undefined ? await checkContracts(client, contracts) : [])
    if (found.status === 'different' || (found.status === 'missing' && !isOwnContract(found)))
      problems.push(`${found.name} at ${found.address}: ${found.detail}`)
  if (problems.length > 0 || !sponsor)
    throw new Error(`The node at ${variable} cannot be used: ${problems.join('; ')}.`)
  const relayer = createQueuedRelayer(client, toKeyAccount(sponsor), cachedFees(client, clock))
  await deployOwn({ client, relayer, log })
  const { blockMs } = chains[requireChainName(client)]
  return openSession({
    client,
    contracts,
    tokens,
    relayer,
    keys: owners ?? createKeyRing(toKeyAccount(sponsor)),
    isDevelopment: false,
    x402Hashes,
    logSearch: {
      pageBlocks: BigInt(PAGE_BLOCKS),
      pages: Math.ceil(SEARCH_MS / (PAGE_BLOCKS * blockMs)),
    },
  })
}

/** Creates the relayer of a key on a public chain. @throws Error when there is none. */
export function createSponsor(client: NodeClient, clock: Clock, sponsor: ChainKey | null): Relayer {
  if (sponsor === null) throw new Error('CHAIN_SPONSOR_KEY is missing: it pays for gas.')
  return createQueuedRelayer(client, toKeyAccount(sponsor), cachedFees(client, clock))
}

/**
 * Deploys those of our own contracts that are missing; their code determines their address.
 * @returns all of them, with the transaction that deployed one. @throws Error when one is still missing.
 */
export async function deployOwn({
  client,
  relayer,
  log,
}: {
  readonly client: NodeClient
  readonly relayer: Relayer
  readonly log: Log
}): Promise<readonly DeployedContract[]> {
  const deployed: DeployedContract[] = []
  for (const [name, { address, data }] of Object.entries(ownContracts)) {
    const before = await client.getCode({ address })
    if (before) {
      deployed.push({ name, address, bytes: countBytes(before), transactionHash: null })
      continue
    }
    log.info({ address }, 'one of our contracts is missing on this chain and is being deployed')
    const { hash } = await relayer.send({ to: commonDeployer, data, gas: 3_000_000n })
    await awaitReceipt(client, hash, DEPLOYMENT_MS)
    const after = await client.getCode({ address })
    if (!after) throw new Error(`No contract could be deployed at ${address}.`)
    deployed.push({ name, address, bytes: countBytes(after), transactionHash: hash })
  }
  return deployed
}

/** One of our contracts on a chain. @property transactionHash null: it was there before. */
export interface DeployedContract {
  readonly name: string
  readonly address: Address
  readonly bytes: number
  readonly transactionHash: Hex | null
}

function countBytes(code: Hex): number {
  return (code.length - 2) / 2
}

function cachedFees(client: NodeClient, clock: Clock): () => Promise<Fees> {
  let cached: { readonly at: number; readonly fees: Promise<Fees> } | undefined
  return () => {
    const at = clock().getTime()
    if (cached !== undefined && at - cached.at < FEES_MS) return cached.fees
    const fees = client.estimateFeesPerGas().then((offer) => ({
      // The excess is not charged; twice the current fee outlasts a rise of the base fee.
      maxFeePerGas: offer.maxFeePerGas * 2n,
      maxPriorityFeePerGas: offer.maxPriorityFeePerGas,
    }))
    const mine = { at, fees }
    cached = mine
    fees.catch(() => {
      if (cached === mine) cached = undefined
    })
    return fees
  }
}
