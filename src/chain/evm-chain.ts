/** The chain port over a gate to an EVM node, shared by the adapters `anvil` and `rpc`. */
import { timers } from '../core/base/timers.ts'
import { Failure } from '../core/failures/failure.ts'
import { type ChainName, chainFacts } from '../core/money/chains.ts'
import { cctpOn } from '../providers/cctp.ts'
import type {
  Address,
  Chain,
  EvmSigner,
  TokenAddresses,
  Wallet,
  WalletModule,
} from '../providers/chain/port.ts'
import { readAllowance } from './accounts/allowances.ts'
import { readSafeState } from './accounts/safe-owners.ts'
import { allowancePrices } from './accounts/wallets.ts'
import { safeAbi, tokenAbi } from './contracts/abi.ts'
import { mintTokens } from './mint.ts'
import type { EvmSession } from './node/evm-session.ts'
import { readBlock } from './node/seen-blocks.ts'
import { isAuthorizationOver, readAuthorizationState } from './relay/authorizations.ts'
import { callWithoutGas, readChannelPayouts, readChannelState } from './relay/channels.ts'
import { findDelivery } from './relay/deliveries.ts'
import { readEscrowState } from './relay/escrow.ts'
import type { Gate } from './relay/gate.ts'
import { isPermitOver, readPermitState } from './relay/permits.ts'
import { isConnectionError } from './relay/refusal.ts'
import type { Relayer } from './relay/relayer.ts'
import { allowanceModule, lowerCaseAddress, safe4337Module } from './rpc/networks.ts'
import { findTransfers, readTransaction } from './transfers.ts'

/** Dependencies of the chain besides its open gate. */
export interface EvmChainOptions {
  readonly name: ChainName
  readonly gate: Gate<EvmSession>
  readonly first: EvmSession
  /** False: a hand-over of a wallet covers no holds here. Those that date from before escrows are on the default chain. */
  readonly hasCards: boolean
  readonly tokens: TokenAddresses
  rpcUrl(): string | null
  /** Called when a node did not answer, so that the adapter can declare it lost. */
  suspect(session: EvmSession): void
  close(): Promise<void>
}

/** Time allowed for detecting a loss after a failed call. */
const NOTICE_MS = 100

/** Sentinel before the first entry of a Safe's list of modules. */
const MODULES_START: Address = '0x0000000000000000000000000000000000000001'

export function createEvmChain(options: EvmChainOptions): Chain {
  const { name, gate, first, hasCards, tokens, rpcUrl, suspect, close } = options
  const { id, confirmations } = chainFacts(name)
  const { transmitter } = cctpOn(name)
  const adjustCover = (wallet: Wallet): Wallet => (hasCards ? wallet : { ...wallet, cardCover: 0n })

  /** Runs repeatable work: if the node is lost meanwhile, it is repeated once on the restored one. */
  async function repeatable<Result>(work: (session: EvmSession) => Promise<Result>): Promise<Result> {
    const session = await gate.enter()
    try {
      return await work(session)
    } catch (error) {
      if (!isConnectionError(error)) throw error
      suspect(session)
      await timers.sleep(NOTICE_MS)
      const next = await gate.enter()
      if (next !== session) return work(next)
      throw new Failure(
        'provider_unavailable',
        `The chain ${name} did not answer.`,
        { retryAfter: 2 },
        { cause: error },
      )
    }
  }

  /** Runs work that must not be repeated. */
  async function once<Result>(work: (session: EvmSession) => Promise<Result>): Promise<Result> {
    const session = await gate.enter()
    try {
      return await work(session)
    } catch (error) {
      if (isConnectionError(error)) suspect(session)
      throw error
    }
  }

  /** Runs work that needs the gateway's own tokens. */
  function development<Result>(work: (session: EvmSession) => Promise<Result>): Promise<Result> {
    return once((session) => {
      if (!session.isDevelopment) throw new Error('The gateway cannot mint the tokens of this chain.')
      return work(session)
    })
  }

  const signer: EvmSigner = {
    get address() {
      return first.signer.address
    },
    readContract: (call) => repeatable((session) => session.signer.readContract(call)),
    verifyTypedData: (input) => repeatable((session) => session.signer.verifyTypedData(input)),
    writeContract: (call) => once((session) => session.signer.writeContract(call)),
    sendTransaction: (transaction) => once((session) => session.signer.sendTransaction(transaction)),
    waitForTransactionReceipt: (input) => once((session) => session.signer.waitForTransactionReceipt(input)),
    getCode: (input) => repeatable((session) => session.signer.getCode(input)),
  }

  return {
    name,
    id,
    confirmations,
    get rpcUrl() {
      return rpcUrl()
    },
    isGasFree: first.isDevelopment,
    entryPoint: first.contracts.entryPoint,
    swapDesk: first.contracts.swapDesk,
    bridgeDesk: first.contracts.bridgeDesk,
    tokens,
    signer,
    get gatewayKeys() {
      const { current, previous } = first.keys
      if (first.isDevelopment) return null
      return {
        current: lowerCaseAddress(current.address),
        previous: previous === undefined ? null : lowerCaseAddress(previous.address),
      }
    },
    get opensWith() {
      const { current, first: firstOwner } = first.keys
      const address = lowerCaseAddress(current.address)
      return address === lowerCaseAddress(firstOwner) ? null : address
    },
    get firstOwner() {
      return lowerCaseAddress(first.keys.first)
    },
    delegate: first.wallets.delegate,
    adoptOwners: (book) => {
      if (!first.isDevelopment) first.keys.adopt(book)
    },
    readSafe: (wallet, at) =>
      repeatable((session) =>
        readSafeState(session, wallet, at === 'latest' || session.isDevelopment ? 'latest' : 'safe'),
      ),
    signAs: (key, operation) => first.operations.signAs(key, operation),
    walletAddress: async (wallet) => first.wallets.findSafe(wallet).address,
    modules: (wallet) => repeatable((session) => readModules(session, wallet)),
    // Depends only on contract addresses, which are the same in every session.
    buildOperation: (operation) => first.operations.buildOperation(operation),
    async readBalance(token, address) {
      const contract = tokens[token]
      if (contract === undefined) return 0n
      return repeatable(({ client }) =>
        client.readContract({
          address: contract,
          abi: tokenAbi,
          functionName: 'balanceOf',
          args: [lowerCaseAddress(address)],
        }),
      )
    },
    submit: (operation) =>
      once((session) => session.operations.submit({ ...operation, wallet: adjustCover(operation.wallet) })),
    hashOperation: (operation) => first.operations.hashOperation(operation),
    awaitExecution: (operation, waitMs) =>
      repeatable((session) => session.operations.awaitExecution(operation, waitMs)),
    authorizationState: (authorization) =>
      repeatable(({ client, logSearch }) => readAuthorizationState(client, authorization, logSearch)),
    isAuthorizationOver: (authorization, validBefore) =>
      repeatable(({ client, isDevelopment, logSearch }) =>
        isAuthorizationOver(client, authorization, {
          validBefore,
          blockTag: isDevelopment ? 'latest' : 'safe',
          search: logSearch,
        }),
      ),
    uptoSupport: () => repeatable((session) => session.readSupport('upto')),
    permitState: (permit) =>
      repeatable(({ client, logSearch, readReceipt }) =>
        readPermitState(client, permit, { search: logSearch, read: readReceipt }),
      ),
    isPermitOver: (permit, validBefore) =>
      repeatable(({ client, isDevelopment }) =>
        isPermitOver(client, permit, { validBefore, blockTag: isDevelopment ? 'latest' : 'safe' }),
      ),
    channelSupport: () => repeatable((session) => session.readSupport('batch-settlement')),
    channelState: (id, at) =>
      repeatable(({ client, isDevelopment }) =>
        readChannelState(client, id, at === 'latest' || isDevelopment ? 'latest' : 'safe'),
      ),
    channelPayouts: (receiver, token) =>
      repeatable(({ client, isDevelopment }) =>
        readChannelPayouts(client, { receiver, token }, isDevelopment ? 'latest' : 'safe'),
      ),
    escrowSupport: () => repeatable((session) => session.readSupport('auth-capture')),
    escrowState: (hash, at) =>
      repeatable(({ client, isDevelopment }) =>
        readEscrowState(client, hash, at === 'latest' || isDevelopment ? 'latest' : 'safe'),
      ),
    callAs: (account, call) => once((session) => callWithoutGas(session, account, call)),
    findDelivery: (nonce) =>
      repeatable(({ client, logSearch }) => findDelivery(client, { transmitter, nonce }, logSearch)),
    transaction: (hash) =>
      repeatable(({ client, readReceipt }) => readTransaction(client, hash, readReceipt)),
    findTransfers: (search) => repeatable(({ client }) => findTransfers(client, tokens, search)),
    block: (number) => repeatable(({ client }) => readBlock(client, number)),
    areBlocksReplaced: () => once((session) => session.seenBlocks.areReplaced()),
    forget: () => once(async (session) => session.forget()),
    identity: () =>
      repeatable(async ({ client, isDevelopment }) =>
        // A public chain is identified by its id; a development node by its own first block.
        isDevelopment ? ((await readBlock(client, 1n))?.hash ?? 'empty') : `chain ${id}`,
      ),
    allowancePrices,
    readAllowance: async (wallet, agentId) =>
      wallet.owner.kind === 'gateway'
        ? null
        : repeatable((session) => readAllowance(session, adjustCover(wallet), agentId)),
    mint: (mints) => development(({ relayer }) => mintTokens(relayer, { name, tokens }, mints)),
    fundGas: (to, wei) => development(({ relayer }) => fundGas(relayer, to, wei)),
    blockNumber: () => repeatable(({ client }) => client.getBlockNumber()),
    latestBlockAt: () =>
      repeatable(async ({ client }) => new Date(Number((await client.getBlock()).timestamp) * 1_000)),
    onReset: (bringUp) => gate.onReset(bringUp),
    async close() {
      gate.close()
      await close()
    },
  }
}

async function fundGas(relayer: Relayer, to: Address, wei: bigint): Promise<void> {
  const { receipt } = await relayer.send({ to: lowerCaseAddress(to), data: '0x', value: wei, gas: 100_000n })
  if (receipt?.status !== 'success') throw new Error(`Sending ${wei} wei to ${to} was refused.`)
}

async function readModules(
  { client, wallets, deployments, contracts }: EvmSession,
  wallet: Wallet,
): Promise<WalletModule[]> {
  const { address } = wallets.findSafe(wallet)
  const known = new Map<Address, Omit<WalletModule, 'address' | 'chain' | 'status'>>([
    [contracts.module, safe4337Module],
    [contracts.allowances, allowanceModule],
  ])
  const describeModule = (module: Address, status: WalletModule['status']): WalletModule => ({
    ...(known.get(module) ?? { name: 'unknown', type: 'unknown', version: 'unknown' }),
    address: module,
    chain: client.chain.name,
    status,
  })
  const planned = wallet.owner.kind === 'gateway' ? [contracts.module] : [...known.keys()]
  if (!(await deployments.isDeployed(address)))
    return planned.map((module) => describeModule(module, 'pending_deployment'))
  const [modules] = await client.readContract({
    address,
    abi: safeAbi,
    functionName: 'getModulesPaginated',
    args: [MODULES_START, 50n],
  })
  // A wallet with a new owner gets the missing modules with its next operation.
  const awaited = planned.filter((module) => !modules.includes(module))
  return [
    ...modules.map((module) => describeModule(module, 'active')),
    ...awaited.map((module) => describeModule(module, 'pending_deployment')),
  ]
}
