/** What agents may spend of a wallet that the gateway does not own, on chain. */
import { encodeFunctionData } from 'viem'
import type { Address, ChainAllowance, Wallet, WalletCall } from '../chain.ts'
import { allowanceAbi } from './abi.ts'
import type { NodeClient } from './client.ts'
import type { Deployments } from './deployments.ts'
import { type AccountContracts, plainAddress, type TokenAddresses } from './networks.ts'
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

/** What the module says of an agent. A Safe that is not deployed yet will have what its setup gives. */
export async function readAllowance(
  {
    client,
    contracts,
    wallets,
    deployments,
  }: {
    client: NodeClient
    contracts: AccountContracts
    wallets: Wallets
    deployments: Pick<Deployments, 'isDeployed'>
  },
  wallet: Wallet,
  agentId: string,
): Promise<ChainAllowance> {
  if (!(await deployments.isDeployed(wallets.safeOf(wallet).address)))
    return { dailyMicros: wallets.starterMicros, spentMicros: 0n, isOwn: false }
  const [dailyMicros, spentMicros, isOwn] = await client.readContract({
    address: contracts.allowances,
    abi: allowanceAbi,
    functionName: 'allowanceOf',
    args: [wallets.safeOf(wallet).address, wallets.safeOf(wallets.delegate).address, agentHash(agentId)],
  })
  return { dailyMicros, spentMicros, isOwn }
}
