/** On-chain allowances of agents on wallets the gateway does not own. */
import { encodeFunctionData } from 'viem'
import type {
  Address,
  ChainAllowance,
  TokenAddresses,
  Wallet,
  WalletCall,
} from '../../providers/chain/port.ts'
import { allowanceAbi, bridgeDeskAbi, safeAbi, swapDeskAbi } from '../contracts/abi.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type AccountContracts, addressIn, lowerCaseAddress } from '../rpc/networks.ts'
import type { Deployments } from './deployments.ts'
import type { KeyRing } from './key-ring.ts'
import { buildBurnOrder, buildDeskCall, buildSwapOrder, type SafeCall } from './user-operation.ts'
import { agentHash, type Wallets } from './wallets.ts'

/**
 * Builds the allowance payment out of a Safe, made by the gateway's own Safe for an agent.
 * @throws Error for a call that is not a payment.
 */
export function buildAllowanceCall(
  { contracts, tokens }: { contracts: AccountContracts; tokens: TokenAddresses },
  { safe, agentId, call }: { safe: Address; agentId: string; call: WalletCall },
): SafeCall {
  if (call.kind === 'allowance' || call.kind === 'owner')
    throw new Error(`An allowance can only pay; it cannot make a call of kind ${call.kind}.`)
  if (call.kind === 'swap' && call.route.burn !== undefined) {
    const order = buildBurnOrder(tokens, call, call.route.burn)
    const args = [contracts.allowances, safe, agentHash(agentId), order] as const
    const data = encodeFunctionData({ abi: bridgeDeskAbi, functionName: 'bridgeForAgent', args })
    return buildDeskCall(contracts.bridgeDesk, data)
  }
  if (call.kind === 'swap') {
    const order = buildSwapOrder(tokens, call, safe)
    const args = [contracts.allowances, safe, agentHash(agentId), order] as const
    const data = encodeFunctionData({ abi: swapDeskAbi, functionName: 'swapForAgent', args })
    return buildDeskCall(contracts.swapDesk, data)
  }
  const args = [
    safe,
    agentHash(agentId),
    addressIn(tokens, call.token),
    lowerCaseAddress(call.to),
    call.units,
  ] as const
  return {
    to: contracts.allowances,
    data: encodeFunctionData({ abi: allowanceAbi, functionName: 'transfer', args }),
  }
}

/**
 * Reads an agent's allowance from the module. A Safe that is not deployed or not handed over yet gets the allowance
 * of its setup or hand-over. If its owner has disabled the module, the allowance is zero.
 */
export async function readAllowance(
  {
    client,
    contracts,
    wallets,
    deployments,
    keys,
  }: {
    client: NodeClient
    contracts: AccountContracts
    wallets: Wallets
    deployments: Pick<Deployments, 'isDeployed'>
    keys: Pick<KeyRing, 'findKnown'>
  },
  wallet: Wallet,
  agentId: string,
): Promise<ChainAllowance> {
  const safe = wallets.findSafe(wallet).address
  if (!(await deployments.isDeployed(safe))) return wallets.firstAllowance(wallet, agentId)
  const safeContract = { address: safe, abi: safeAbi } as const
  const { address: owner } = wallets.findSigner(wallet.owner)
  const [owners, isEnabled, [dailyMicros, spentMicros, isOwn, onceMicros]] = await Promise.all([
    client.readContract({ ...safeContract, functionName: 'getOwners' }),
    client.readContract({ ...safeContract, functionName: 'isModuleEnabled', args: [contracts.allowances] }),
    client.readContract({
      address: contracts.allowances,
      abi: allowanceAbi,
      functionName: 'allowanceOf',
      args: [safe, wallets.findSafe(wallets.delegate).address, agentHash(agentId)],
    }),
  ])
  if (isEnabled) return { dailyMicros, spentMicros, onceMicros, isOwn }
  // The gateway hands the Safe over with the next operation. An owner who adds the gateway as a co-owner changes
  // nothing.
  if (!owners.some((one) => isSame(one, owner)) && (await keys.findKnown(owners)) !== undefined)
    return { ...wallets.firstAllowance(wallet, agentId), spentMicros }
  return { dailyMicros: 0n, spentMicros: 0n, onceMicros: 0n, isOwn }
}

function isSame(one: Address, other: Address): boolean {
  return lowerCaseAddress(one) === lowerCaseAddress(other)
}
