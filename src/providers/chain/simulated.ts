/** The chain in memory, for machines without the binary: the same promises, no node, nothing kept. */
import { getAddress } from 'viem'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type {
  Address,
  AuthorizedOperation,
  Chain,
  ChainOperation,
  Hex,
  SignableOperation,
  Submission,
  Wallet,
  WalletModule,
} from '../chain.ts'
import { authorizationAbi } from './authorizations.ts'
import {
  allowanceModule,
  baseSepolia,
  canonicalContracts,
  safe4337Module,
  sandboxTokenAddresses,
} from './networks.ts'
import { createSimulatedAllowances } from './simulated-allowances.ts'
import { createSimulatedSigner } from './simulated-signer.ts'
import { createSimulatedState, fakeAddress, fakeHash } from './simulated-state.ts'
import { safeCallOf, signableOf } from './user-operation.ts'

/** What it needs. */
export interface SimulatedChainOptions {
  readonly clock: Clock
  readonly log: Log
}

/**
 * A new, empty simulated chain. Its hashes and addresses are well formed and follow from the ids alone. It checks times,
 * balances and allowances as the real one does, but no owner's signature: that is the gateway's own check, made before.
 */
export async function createSimulatedChain({ clock, log }: SimulatedChainOptions): Promise<Chain> {
  const state = createSimulatedState()
  const deployed = new Set<string>()
  const allowances = createSimulatedAllowances(clock)
  const signer = createSimulatedSigner({ state, clock, caller: getAddress(fakeAddress('sponsor')) })

  function submit(operation: AuthorizedOperation): Submission {
    const { authorization, wallet, validUntil } = operation
    const submitted: Submission = { status: 'submitted', transactionHash: hashOf(operation) }
    if (state.isUsed(markOf(operation))) return submitted
    if (validUntil <= clock())
      return { status: 'refused', reason: 'AA22 expired or not due', cause: 'authorization' }
    if (authorization.kind === 'gateway' && wallet.owner.kind !== 'gateway')
      return { status: 'refused', reason: 'AA24 signature error', cause: 'authorization' }
    const refusal = execute(operation)
    if (refusal !== undefined) return refusal
    state.mine()
    deployed.add(wallet.accountId)
    return submitted
  }

  function execute(operation: AuthorizedOperation): Submission | undefined {
    const { authorization, wallet, call } = operation
    const mark = markOf(operation)
    if (call.kind === 'allowance') {
      allowances.set(wallet.accountId, call.agentId, call.dailyMicros)
      state.use(mark)
      return undefined
    }
    const from = walletOf(wallet.accountId)
    const refusal = state.refusalOf(call.token, from, call.units)
    if (refusal !== undefined) return { status: 'refused', reason: refusal, cause: 'transfer' }
    const exceeded =
      authorization.kind === 'allowance'
        ? allowances.spend(wallet.accountId, authorization.agentId, call)
        : undefined
    if (exceeded !== undefined) return { status: 'refused', reason: exceeded, cause: 'authorization' }
    state.move(call.token, { from, to: call.to, units: call.units, mark })
    return undefined
  }

  function modulesOf({ accountId, owner }: Wallet): readonly WalletModule[] {
    const status = deployed.has(accountId) ? 'active' : 'pending_deployment'
    const { module, allowances: allowancesAt } = canonicalContracts
    const chain = baseSepolia.name
    return [
      { ...safe4337Module, address: module, chain, status },
      ...(owner.kind === 'gateway'
        ? []
        : [{ ...allowanceModule, address: allowancesAt, chain, status } as const]),
    ]
  }

  log.info({}, 'chain is simulated: nothing of it outlives this process')
  return {
    name: baseSepolia.name,
    id: baseSepolia.id,
    rpcUrl: null,
    isGasFree: true,
    entryPoint: canonicalContracts.entryPoint,
    tokens: sandboxTokenAddresses,
    signer,
    walletAddress: async ({ accountId }) => walletOf(accountId),
    modules: async (wallet) => modulesOf(wallet),
    operationOf: signable,
    balanceOf: async (token, address) => state.balanceOf(token, address),
    submit: async (operation) => submit(operation),
    async outcomeOf(operation) {
      if (!state.isUsed(markOf(operation))) return { status: 'absent' }
      return { status: 'confirmed', transactionHash: hashOf(operation) }
    },
    // Nothing takes an authorization back here, and transactions are not kept by what they spend.
    authorizationOutcome: async ({ token, authorizer, nonce }) => {
      const call = { address: token, abi: authorizationAbi, functionName: 'authorizationState' }
      const isSpent = await signer.readContract({ ...call, args: [authorizer, nonce] })
      return isSpent === true ? { status: 'used', transactionHash: null } : { status: 'unused' }
    },
    allowanceOf: async ({ accountId, owner }, agentId) =>
      owner.kind === 'gateway' ? null : allowances.of(accountId, agentId),
    async mint(mints) {
      for (const { token, to, units } of mints) state.mint(token, to, units)
      state.mine()
    },
    // Nobody can send a transaction of their own here, so nobody needs gas.
    fundGas: async () => undefined,
    blockNumber: async () => state.blockNumber(),
    // Books in memory are never behind.
    latestBlockAt: async () => clock(),
    // It never comes back empty: it ends with the process.
    onReset: () => undefined,
    close: async () => undefined,
  }
}

function signable({ wallet, id, call, validUntil }: ChainOperation): SignableOperation {
  const contracts = canonicalContracts
  const delegate = fakeAddress('delegate')
  return signableOf(contracts, {
    safe: walletOf(wallet.accountId),
    id,
    call: safeCallOf({ contracts, tokens: sandboxTokenAddresses, delegate }, call),
    validUntil,
    signer: wallet.owner.kind === 'passkey' ? 'passkey' : 'key',
  })
}

function walletOf(accountId: string): Address {
  return getAddress(fakeAddress(`wallet ${accountId}`))
}

function markOf({ wallet, id }: ChainOperation): string {
  return `${wallet.accountId}|${id}`
}

function hashOf(operation: ChainOperation): Hex {
  return fakeHash(`transfer ${markOf(operation)}`)
}
