/** Sessions on public chains, where every contract must already exist. */
import { type LocalAccount, privateKeyToAccount } from 'viem/accounts'
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import { stablecoins } from '../../../money/money.ts'
import { createQueuedRelayer } from '../relay/queued-relayer.ts'
import { awaitReceipt } from '../relay/receipts.ts'
import type { Fees, Relayer } from '../relay/relayer.ts'
import type { NodeClient } from '../rpc/client.ts'
import {
  type AccountContracts,
  baseSepolia,
  commonDeployer,
  type OwnContract,
  ownContracts,
  type TokenAddresses,
} from '../rpc/networks.ts'
import { type EvmSession, openSession } from './evm-session.ts'

/** Configuration of a public chain. */
export interface PublicChain {
  readonly contracts: AccountContracts
  readonly tokens: TokenAddresses
  /** Key that pays for every transaction. */
  readonly sponsorKey: string | null | undefined
  /** Key that signs for every Safe; the sponsor's by default. */
  readonly ownerKey: string | null | undefined
}

/** Time limit for mining a deployment. */
const DEPLOYMENT_MS = 60_000

/** Cache lifetime of fee estimates. */
const FEES_MS = 4_000

/**
 * Range of the search for an operation's event: nodes answer up to 10,000 blocks at once. About six days in total.
 */
const logSearch = { pageBlocks: 9_000n, pages: 30 } as const

/** Checks all requirements and opens a session. @throws Error listing everything that is missing. */
export async function openPublicSession(
  { client, clock, log }: { client: NodeClient; clock: Clock; log: Log },
  { contracts, tokens, sponsorKey, ownerKey }: PublicChain,
): Promise<EvmSession> {
  const isThere = async (address: `0x${string}`) => Boolean(await client.getCode({ address }))
  const problems: string[] = []
  const chainId = await client.getChainId()
  if (chainId !== baseSepolia.id) problems.push(`its chain id is ${chainId}, not ${baseSepolia.id}`)
  const sponsor = accountOf(sponsorKey)
  if (sponsor === undefined)
    problems.push('CHAIN_SPONSOR_KEY (0x and 64 hex digits) is missing: it pays for gas')
  const owner = ownerKey ? accountOf(ownerKey) : sponsor
  if (owner === undefined && sponsor !== undefined)
    problems.push("the owner's key is not 0x and 64 hex digits")
  const own: readonly string[] = Object.values(ownContracts).map(({ address }) => address)
  for (const [name, address] of Object.entries(contracts))
    if (!own.includes(address) && !(await isThere(address)))
      problems.push(`there is no contract at ${address} (${name})`)
  if (!(await isThere(tokens.USDC))) problems.push(`there is no contract at ${tokens.USDC} (USDC)`)
  if (problems.length > 0 || sponsor === undefined || owner === undefined)
    throw new Error(`The node at CHAIN_RPC_URL cannot be used: ${problems.join('; ')}.`)
  for (const token of stablecoins)
    if (!(await isThere(tokens[token])))
      log.warn({ token, address: tokens[token] }, 'a token has no contract on this chain')
  const relayer = createQueuedRelayer(client, sponsor, cachedFees(client, clock))
  for (const contract of Object.values(ownContracts))
    if (!(await isThere(contract.address))) await deployOwn({ client, relayer, log }, contract)
  return openSession({
    client,
    contracts,
    tokens,
    relayer,
    owner,
    isDevelopment: false,
    logSearch,
  })
}

/** Deploys our own contracts on first use; their code determines their address. */
async function deployOwn(
  { client, relayer, log }: { client: NodeClient; relayer: Relayer; log: Log },
  { address, data }: OwnContract,
): Promise<void> {
  log.info({ address }, 'one of our contracts is missing on this chain and is being deployed')
  const { hash } = await relayer.send({ to: commonDeployer, data, gas: 3_000_000n })
  await awaitReceipt(client, hash, DEPLOYMENT_MS)
  if (!(await client.getCode({ address }))) throw new Error(`No contract could be deployed at ${address}.`)
}

function accountOf(key: string | null | undefined): LocalAccount | undefined {
  const digits = /^0x([0-9a-f]{64})$/i.exec(key ?? '')?.[1]
  return digits === undefined ? undefined : privateKeyToAccount(`0x${digits}`)
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
