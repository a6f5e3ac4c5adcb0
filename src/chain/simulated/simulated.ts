/** The chain in memory, for machines without the binary: same guarantees, no node, nothing persisted. */
import { getAddress } from 'viem'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { type ChainName, chains } from '../../core/money/chains.ts'
import {
  type Address,
  type AuthorizationState,
  type AuthorizedOperation,
  type Chain,
  type ChainOperation,
  type Hex,
  MINT_MARK,
  type PermitState,
  type SignableOperation,
  type Submission,
  type TokenAuthorization,
  type TokenPermit,
  type Wallet,
  type WalletModule,
} from '../../providers/chain/port.ts'
import { buildSignable, toSafeCall } from '../accounts/user-operation.ts'
import { allowancePrices, buildSalt } from '../accounts/wallets.ts'
import {
  allowanceModule,
  canonicalContracts,
  lowerCaseAddress,
  mapAddresses,
  safe4337Module,
} from '../rpc/networks.ts'
import { createSimulatedAllowances } from './simulated-allowances.ts'
import { findBurnRefusal, makeBurn } from './simulated-bridge.ts'
import { type SimulatedNetwork, simulatedNetwork, tokenAt } from './simulated-network.ts'
import { createSimulatedSigner, judge } from './simulated-signer.ts'
import { createSimulatedState, fakeAddress, fakeHash, messageMark } from './simulated-state.ts'
import { judgeSwap, makeSwap, simulatedDesk } from './simulated-swaps.ts'
import { authorizationMark } from './simulated-token.ts'
import { permitMark } from './simulated-upto.ts'

export interface SimulatedChainOptions {
  readonly clock: Clock
  readonly log: Log
  /** Random by default. */
  readonly identity?: string
  /** A test chain. */
  readonly name?: ChainName
}

/**
 * Creates a new, empty simulated chain. Its hashes and addresses are well formed and depend only on the ids. It
 * checks times, balances and allowances like the real one, but not owners' signatures, which the gateway has verified
 * before.
 */
export async function createSimulatedChain({
  clock,
  log,
  identity,
  name = 'base-sepolia',
}: SimulatedChainOptions): Promise<Chain> {
  const network = simulatedNetwork(name)
  const tokens = mapAddresses(network.tokens)
  const state = createSimulatedState(network, identity)
  const deployed = new Set<string>()
  const allowances = createSimulatedAllowances(clock)
  const signer = createSimulatedSigner({ state, clock, caller: getAddress(fakeAddress('sponsor')) })

  function submit(operation: AuthorizedOperation): Submission {
    const { authorization, wallet, validUntil } = operation
    const used = state.findTransaction(markOperation(operation))
    if (used !== undefined) return { status: 'submitted', transactionHash: used.hash }
    if (validUntil <= clock())
      return { status: 'refused', reason: 'AA22 expired or not due', cause: 'authorization' }
    if (authorization.kind === 'gateway' && wallet.owner.kind !== 'gateway')
      return { status: 'refused', reason: 'AA24 signature error', cause: 'authorization' }
    const refusal = execute(operation)
    if (refusal !== undefined) return refusal
    const transactionHash = state.mine({
      hash: hashTransfer(operation),
      operationHash: hashOperation(operation),
    })
    deployed.add(buildSalt(wallet))
    return { status: 'submitted', transactionHash }
  }

  function execute(operation: AuthorizedOperation): Submission | undefined {
    const { authorization, wallet, call } = operation
    const mark = markOperation(operation)
    if (call.kind === 'owner')
      return { status: 'refused', reason: 'AA24 signature error', cause: 'authorization' }
    if (call.kind === 'allowance') {
      allowances.set(wallet.accountId, call.agentId, call.dailyMicros)
      state.use(mark)
      return undefined
    }
    const from = deriveWallet(buildSalt(wallet))
    const refusal = state.findRefusal(call.token, from, call.units)
    if (refusal !== undefined) return { status: 'refused', reason: refusal, cause: 'transfer' }
    const isBurn = call.kind === 'swap' && call.route.burn !== undefined
    const bought = isBurn
      ? (findBurnRefusal(network, call) ?? 0n)
      : call.kind === 'swap'
        ? judgeSwap(network, call)
        : 0n
    if (typeof bought === 'string') return { status: 'refused', reason: bought, cause: 'transfer' }
    const exceeded =
      authorization.kind === 'allowance' ? allowances.spend(wallet, authorization.agentId, call) : undefined
    if (exceeded !== undefined) return { status: 'refused', reason: exceeded, cause: 'authorization' }
    if (isBurn) makeBurn(state, { call, from, mark })
    else if (call.kind === 'swap') makeSwap(state, { call, from, mark, bought })
    else state.move(call.token, { from, to: call.to, units: call.units, mark })
    return undefined
  }

  /** A nonce that was used up without a transfer of its own was cancelled. */
  function readAuthorization(authorization: TokenAuthorization): AuthorizationState {
    const used = state.findTransaction(authorizationMark(authorization))
    if (used === undefined) return { status: 'unused' }
    const isPaid = used.transfers.some((log) => log.authorization?.nonce === authorization.nonce)
    return isPaid ? { status: 'used', transactionHash: used.hash } : { status: 'canceled' }
  }

  /** The second permit of an owner takes the first one back. */
  function readPermit({ token, owner, nonce }: TokenPermit): PermitState {
    const used = state.findTransaction(permitMark(owner, nonce))
    if (used !== undefined) return { status: 'used', transactionHashes: [used.hash] }
    const symbol = tokenAt(network, token)
    return {
      status: symbol !== undefined && state.countPermits(symbol, owner) >= 2n ? 'canceled' : 'unused',
    }
  }

  function listModules({ accountId, owner }: Wallet): readonly WalletModule[] {
    const status = deployed.has(accountId) ? 'active' : 'pending_deployment'
    const { module, allowances: allowancesAt } = canonicalContracts
    const chain = name
    return [
      { ...safe4337Module, address: module, chain, status },
      ...(owner.kind === 'gateway'
        ? []
        : [{ ...allowanceModule, address: allowancesAt, chain, status } as const]),
    ]
  }

  log.info({}, 'the chain is simulated: it does not outlive this process')
  return {
    name,
    id: network.chainId,
    confirmations: chains[name].confirmations,
    rpcUrl: null,
    isGasFree: true,
    entryPoint: canonicalContracts.entryPoint,
    tokens,
    swapDesk: simulatedDesk,
    bridgeDesk: canonicalContracts.bridgeDesk,
    findDelivery: async (nonce) => state.findTransaction(messageMark(nonce))?.hash,
    signer,
    // There is one key here, which is never replaced.
    gatewayKeys: null,
    opensWith: null,
    firstOwner: fakeAddress('owner'),
    delegate: { accountId: 'delegate', origin: { kind: 'gateway' }, owner: { kind: 'gateway' } },
    adoptOwners: () => undefined,
    readSafe: async (wallet) => {
      const isOurs = wallet.owner.kind === 'gateway'
      const owners = [fakeAddress('owner')]
      return deployed.has(buildSalt(wallet))
        ? { owners, isOurs, isPersons: !isOurs, hasOtherModules: false }
        : null
    },
    signAs: async (key) => {
      throw new Error(`The simulated chain has no key ${key}.`)
    },
    walletAddress: async (wallet) => deriveWallet(buildSalt(wallet)),
    modules: async (wallet) => listModules(wallet),
    buildOperation: (operation) => buildOperation(network, operation),
    readBalance: async (token, address) => state.readBalance(token, address),
    submit: async (operation) => submit(operation),
    hashOperation,
    async awaitExecution(operation) {
      const transaction = state.findTransaction(markOperation(operation))
      if (transaction === undefined) return { status: 'absent' }
      // Nonces have no other users here, so the transfers of the transaction identify the executed operation.
      const operationHash = transaction.transfers[0]?.operationHash ?? hashOperation(operation)
      return { status: 'executed', operationHash, succeeded: true, transaction }
    },
    authorizationState: async (authorization) => readAuthorization(authorization),
    isAuthorizationOver: async (authorization, validBefore) => {
      const { status } = readAuthorization(authorization)
      return status === 'canceled' || (status === 'unused' && clock() >= validBefore)
    },
    uptoSupport: async () => 'supported',
    permitState: async (permit) => readPermit(permit),
    isPermitOver: async (permit, validBefore) => {
      const { status } = readPermit(permit)
      return status === 'canceled' || (status === 'unused' && clock() >= validBefore)
    },
    channelSupport: async () => 'supported',
    channelState: async (id) => {
      const { balance, claimed, withdrawal } = state.channel(id)
      return {
        balance,
        claimed,
        withdrawal: withdrawal && {
          amount: withdrawal.amount,
          initiatedAt: new Date(withdrawal.initiatedAt * 1_000),
        },
      }
    },
    channelPayouts: async (receiver, token) => state.receiver(receiver, token).settled,
    escrowSupport: async () => 'supported',
    escrowState: async (hash) => ({ ...state.escrow(hash) }),
    async callAs({ address }, { to, data, nonce }) {
      // Gas costs nothing here, and an address's calls are counted by their nonces.
      const mark = `call|${lowerCaseAddress(address)}|${nonce}`
      if (state.isUsed(mark)) return
      const judged = await judge({ state, clock, caller: address }, to, data)
      if (state.isUsed(mark)) return
      judged.commit()
      state.use(mark)
      state.mine({ calldata: data })
    },
    transaction: async (hash) => state.transaction(hash),
    findTransfers: async ({ fromBlock, toBlock, to }) =>
      state
        .transactionsBetween(fromBlock, toBlock)
        .flatMap(({ hash, transfers }) =>
          transfers
            .filter((transfer) => to === undefined || transfer.to === lowerCaseAddress(to))
            .map((transfer) => ({ ...transfer, transactionHash: hash })),
        ),
    block: async (number) =>
      number > state.blockNumber()
        ? undefined
        : { number, hash: fakeHash(`block ${state.identity} ${number}`) },
    identity: async () => state.identity,
    // Blocks are never replaced here.
    areBlocksReplaced: async () => false,
    forget: async () => undefined,
    allowancePrices,
    readAllowance: async (wallet, agentId) =>
      wallet.owner.kind === 'gateway' ? null : allowances.of(wallet, agentId),
    async mint(mints) {
      for (const { token, to, units } of mints) state.mint(token, to, units)
      state.mine({ calldata: MINT_MARK })
    },
    // Clients cannot send transactions here, so they need no gas.
    fundGas: async () => undefined,
    blockNumber: async () => state.blockNumber(),
    // In-memory books are never behind.
    latestBlockAt: async () => clock(),
    // The chain never comes back empty: it ends with the process.
    onReset: () => undefined,
    close: async () => undefined,
  }
}

function buildOperation(
  network: SimulatedNetwork,
  { wallet, id, call, validUntil }: ChainOperation,
): SignableOperation {
  const contracts = canonicalContracts
  const delegate = fakeAddress('delegate')
  const safe = deriveWallet(buildSalt(wallet))
  return buildSignable(
    { ...contracts, chainId: network.chainId },
    {
      safe,
      id,
      call: toSafeCall({ contracts, tokens: mapAddresses(network.tokens), delegate, safe }, call),
      validUntil,
      signer: wallet.owner.kind === 'passkey' ? 'passkey' : 'key',
    },
  )
}

function deriveWallet(salt: string): Address {
  return getAddress(fakeAddress(`wallet ${salt}`))
}

function markOperation({ wallet, id }: ChainOperation): string {
  return `${buildSalt(wallet)}|${id}`
}

function hashOperation({ wallet, id, call }: ChainOperation): Hex {
  const parts = { wallet: buildSalt(wallet), id, ...call }
  return fakeHash(
    `operation ${JSON.stringify(parts, (_name, value) => (typeof value === 'bigint' ? `${value}` : value))}`,
  )
}

function hashTransfer(operation: ChainOperation): Hex {
  return fakeHash(`transfer ${markOperation(operation)}`)
}
