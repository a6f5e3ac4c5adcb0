/** A session on a public chain: nothing is deployed there, everything must be where it is said to be. */
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

/** What a public chain needs to be told. */
export interface PublicChain {
  readonly contracts: AccountContracts
  readonly tokens: TokenAddresses
  /** Pays for every transaction. */
  readonly sponsorKey: string | null | undefined
  /** Signs for every Safe; the sponsor's by default. */
  readonly ownerKey: string | null | undefined
}

/** How long a deployment may take to be mined. */
const DEPLOYMENT_MS = 60_000

/** How long an offer of fees is good. */
const FEES_MS = 4_000

/** How far back an operation's event is looked for: nodes answer up to 10,000 blocks at once. About six days in all. */
const logSearch = { pageBlocks: 9_000n, pages: 30 } as const

/** Checks that everything is there and opens a session. @throws Error that lists all that is missing. */
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
      problems.push(`no contract stands at ${address} (${name})`)
  if (!(await isThere(tokens.USDC))) problems.push(`no contract stands at ${tokens.USDC} (USDC)`)
  if (problems.length > 0 || sponsor === undefined || owner === undefined)
    throw new Error(`The node at CHAIN_RPC_URL cannot be used: ${problems.join('; ')}.`)
  for (const token of stablecoins)
    if (!(await isThere(tokens[token])))
      log.warn({ token, address: tokens[token] }, 'token has no contract on this chain')
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

/** Our own contracts are deployed by whoever needs them first: their code is their address. */
async function deployOwn(
  { client, relayer, log }: { client: NodeClient; relayer: Relayer; log: Log },
  { address, data }: OwnContract,
): Promise<void> {
  log.info({ address }, 'a contract of ours is not on this chain yet and is deployed')
  const { hash } = await relayer.send({ to: commonDeployer, data, gas: 3_000_000n })
  await awaitReceipt(client, hash, DEPLOYMENT_MS)
  if (!(await client.getCode({ address }))) throw new Error(`No contract could be deployed at ${address}.`)
}

function accountOf(key: string | null | undefined): LocalAccount | undefined {
  const digits = /^0x([0-9a-f]{64})$/i.exec(key ?? '')?.[1]
  return digits === undefined ? undefined : privateKeyToAccount(`0x${digits}`)
}

function cachedFees(client: NodeClient, clock: Clock): () => Promise<Fees> {
  let asked: { readonly at: number; readonly fees: Promise<Fees> } | undefined
  return () => {
    const at = clock().getTime()
    if (asked !== undefined && at - asked.at < FEES_MS) return asked.fees
    const fees = client.estimateFeesPerGas().then((offer) => ({
      // What is not needed is not taken; twice as much outlives a rise of the base fee.
      maxFeePerGas: offer.maxFeePerGas * 2n,
      maxPriorityFeePerGas: offer.maxPriorityFeePerGas,
    }))
    const mine = { at, fees }
    asked = mine
    fees.catch(() => {
      if (asked === mine) asked = undefined
    })
    return fees
  }
}
