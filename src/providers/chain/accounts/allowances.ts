/** What agents may spend of a wallet that the gateway does not own, on chain. */
import { encodeFunctionData } from 'viem'
import type { Address, ChainAllowance, Wallet, WalletCall } from '../../chain.ts'
import { allowanceAbi, safeAbi } from '../contracts/abi.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type AccountContracts, plainAddress, type TokenAddresses } from '../rpc/networks.ts'
import type { Deployments } from './deployments.ts'
import type { SafeCall } from './user-operation.ts'
import { agentHash, type Wallets } from './wallets.ts'

/** The payment out of a Safe that the gateway's own Safe makes for an agent. @throws Error for a call that is no payment. */
export function allowanceCallOf(
  { contracts, tokens }: { contracts: AccountContracts; tokens: TokenAddresses },
  { safe, agentId, call }: { safe: Address; agentId: string; call: WalletCall },
): SafeCall {
  if (call.kind !== 'transfer')
    throw new Error(`An allowance pays; it cannot do a call of kind ${call.kind}.`)
  const args = [safe, agentHash(agentId), tokens[call.token], plainAddress(call.to), call.units] as const
  return {
    to: contracts.allowances,
    data: encodeFunctionData({ abi: allowanceAbi, functionName: 'transfer', args }),
  }
}

/**
 * What the module says of an agent. A Safe that is not deployed yet, or not handed over, will have what its setup or its
 * hand-over gives. Where its owner has switched the module off, nobody spends by it.
 */
export async function readAllowance(
  {
    client,
    contracts,
    wallets,
    deployments,
    gatewayOwner,
  }: {
    client: NodeClient
    contracts: AccountContracts
    wallets: Wallets
    deployments: Pick<Deployments, 'isDeployed'>
    gatewayOwner: Address
  },
  wallet: Wallet,
  agentId: string,
): Promise<ChainAllowance> {
  const safe = wallets.safeOf(wallet).address
  if (!(await deployments.isDeployed(safe))) return wallets.firstAllowance(wallet, agentId)
  const ask = { address: safe, abi: safeAbi } as const
  const { address: owner } = wallets.signerOf(wallet.owner)
  const [isOurs, isTheirs, isEnabled, [dailyMicros, spentMicros, isOwn, onceMicros]] = await Promise.all([
    client.readContract({ ...ask, functionName: 'isOwner', args: [gatewayOwner] }),
    client.readContract({ ...ask, functionName: 'isOwner', args: [owner] }),
    client.readContract({ ...ask, functionName: 'isModuleEnabled', args: [contracts.allowances] }),
    client.readContract({
      address: contracts.allowances,
      abi: allowanceAbi,
      functionName: 'allowanceOf',
      args: [safe, wallets.safeOf(wallets.delegate).address, agentHash(agentId)],
    }),
  ])
  // The gateway hands it over with the next operation. An owner who lets the gateway in again changes nothing.
  if (isOurs && !isTheirs && !isEnabled) return { ...wallets.firstAllowance(wallet, agentId), spentMicros }
  if (!isEnabled) return { dailyMicros: 0n, spentMicros: 0n, onceMicros: 0n, isOwn }
  return { dailyMicros, spentMicros, onceMicros, isOwn }
}
