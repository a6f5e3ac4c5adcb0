/** The chain in memory, for machines without the binary: the same promises, no node, nothing kept. */
import { getAddress } from 'viem'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Address, Chain, ChainTransfer, Hex, Submission, WalletModule } from '../chain.ts'
import { baseSepolia, canonicalContracts, safe4337Module, sandboxTokenAddresses } from './networks.ts'
import { createSimulatedSigner } from './simulated-signer.ts'
import { createSimulatedState, fakeAddress, fakeHash } from './simulated-state.ts'

/** What it needs. */
export interface SimulatedChainOptions {
  readonly clock: Clock
  readonly log: Log
}

/** A new, empty simulated chain. Its hashes and addresses are well formed and follow from the ids alone. */
export async function createSimulatedChain({ clock, log }: SimulatedChainOptions): Promise<Chain> {
  const state = createSimulatedState()
  const deployed = new Set<string>()
  const signer = createSimulatedSigner({ state, clock, caller: getAddress(fakeAddress('sponsor')) })

  function submit(transfer: ChainTransfer): Submission {
    const mark = markOf(transfer)
    if (state.isUsed(mark)) return { status: 'submitted', transactionHash: hashOf(transfer) }
    const { accountId, token, to, units } = transfer
    const from = walletOf(accountId)
    const refusal = state.refusalOf(token, from, units)
    if (refusal !== undefined) return { status: 'refused', reason: refusal }
    state.move(token, { from, to, units, mark })
    state.mine()
    deployed.add(accountId)
    return { status: 'submitted', transactionHash: hashOf(transfer) }
  }

  function modulesOf(accountId: string): readonly WalletModule[] {
    const status = deployed.has(accountId) ? 'active' : 'pending_deployment'
    return [{ ...safe4337Module, address: canonicalContracts.module, chain: baseSepolia.name, status }]
  }

  log.info({}, 'chain is simulated: nothing of it outlives this process')
  return {
    name: baseSepolia.name,
    id: baseSepolia.id,
    rpcUrl: null,
    entryPoint: canonicalContracts.entryPoint,
    tokens: sandboxTokenAddresses,
    signer,
    walletAddress: async (accountId) => walletOf(accountId),
    modules: async (accountId) => modulesOf(accountId),
    balanceOf: async (token, address) => state.balanceOf(token, address),
    submitTransfer: async (transfer) => submit(transfer),
    async outcomeOf(transfer) {
      if (!state.isUsed(markOf(transfer))) return { status: 'absent' }
      return { status: 'confirmed', transactionHash: hashOf(transfer) }
    },
    async mint(mints) {
      for (const { token, to, units } of mints) state.mint(token, to, units)
      state.mine()
    },
    // Nobody can send a transaction of their own here, so nobody needs gas.
    fundGas: async () => undefined,
    blockNumber: async () => state.blockNumber(),
    // It never comes back empty: it ends with the process.
    onReset: () => undefined,
    close: async () => undefined,
  }
}

function walletOf(accountId: string): Address {
  return getAddress(fakeAddress(`wallet ${accountId}`))
}

function markOf({ accountId, transferId }: ChainTransfer): string {
  return `${accountId}|${transferId}`
}

function hashOf(transfer: ChainTransfer): Hex {
  return fakeHash(`transfer ${markOf(transfer)}`)
}
