/** CCTP v2 and the bridge desk of the simulated chain: what `BridgeDesk.sol` and the sandbox's messenger and transmitter would do. */
import {
  concat,
  decodeFunctionData,
  keccak256,
  numberToHex,
  pad,
  recoverAddress,
  size,
  slice,
  zeroHash,
} from 'viem'
import { chainNames } from '../../core/money/chains.ts'
import {
  cctpAbi,
  cctpOn,
  finality,
  parseBurnMessage,
  sandboxAttesterAddress,
  sandboxFeeRecipient,
  sandboxMessengerAddress,
  sandboxTransmitterAddress,
} from '../../providers/cctp.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import { canonicalContracts, lowerCaseAddress, sandboxTokensOn } from '../rpc/networks.ts'
import type { SimulatedNetwork } from './simulated-network.ts'
import { messageMark, type SimulatedState } from './simulated-state.ts'
import type { SwapCall } from './simulated-swaps.ts'
import { type CallContext, prepareWrite, read, type SimulatedCall } from './simulated-token.ts'

/** Offset of the sender in a message, and of its body. */
const [SENDER, BODY] = [44, 148]

export function isBridgeContract(address: Address): boolean {
  return [sandboxMessengerAddress, sandboxTransmitterAddress].some(
    (one) => lowerCaseAddress(one) === lowerCaseAddress(address),
  )
}

/** Checks an encoded call of either contract. @throws Error with the contract's reason when it would revert. */
export async function judgeBridgeCall(context: CallContext, data: Hex): Promise<SimulatedCall> {
  const { state } = context
  const call = decodeFunctionData({ abi: cctpAbi, data })
  switch (call.functionName) {
    case 'localDomain':
      return read(cctpOn(state.network.name).domain)
    case 'remoteTokenMessengers': {
      const encoded = findChain(call.args[0]) === undefined ? zeroHash : toWord(sandboxMessengerAddress)
      return { result: encoded, encoded, commit: () => undefined }
    }
    case 'usedNonces':
      return read(state.isUsed(messageMark(call.args[0])) ? 1n : 0n)
    case 'receiveMessage':
      return judgeDelivery(context, call.args)
  }
}

async function judgeDelivery(
  { state }: CallContext,
  [message, attestation]: readonly [Hex, Hex],
): Promise<SimulatedCall> {
  if (size(attestation) !== 65) throw new Error('Invalid attestation length')
  const signer = await recoverAddress({ hash: keccak256(message), signature: attestation }).catch(
    () => undefined,
  )
  if (signer !== sandboxAttesterAddress) throw new Error('Invalid signature: not attester')
  const parsed = parseBurnMessage(message)
  if (parsed === undefined) throw new Error('Invalid message body')
  const { source, nonce, burn } = parsed
  const name = findChain(source)
  if (parsed.destination !== cctpOn(state.network.name).domain) throw new Error('Invalid destination domain')
  const sender = slice(message, SENDER, SENDER + 32)
  if (name === undefined || sender !== toWord(sandboxMessengerAddress))
    throw new Error('Remote TokenMessenger unsupported')
  if (burn.token !== lowerCaseAddress(sandboxTokensOn(name).USDC.address))
    throw new Error('Mint token not supported')
  const check = () => {
    if (state.isUsed(messageMark(nonce))) throw new Error('Nonce already used')
    if (burn.expirationBlock > 0n && burn.expirationBlock <= state.blockNumber() + 1n)
      throw new Error('Message expired and must be re-signed')
    if (burn.feeExecuted >= burn.units) throw new Error('Fee equals or exceeds amount')
    if (burn.feeExecuted > burn.maxFee) throw new Error('Fee exceeds max fee')
  }
  return prepareWrite(check, () =>
    state.deliver({ nonce, source, sender, body: slice(message, BODY) }, () => {
      state.mint('USDC', burn.recipient, burn.units - burn.feeExecuted)
      if (burn.feeExecuted > 0n) state.mint('USDC', sandboxFeeRecipient, burn.feeExecuted)
    }),
  )
}

/** Judges a burn. @returns why it would revert. */
export function findBurnRefusal(
  { name }: SimulatedNetwork,
  { token, units, route }: SwapCall,
): string | undefined {
  const { burn } = route
  if (burn === undefined || !isBridgeContract(route.target)) return 'the burn fails: no messenger'
  if (token !== 'USDC') return 'the burn fails: Burn token not supported'
  if (units - route.minReceived >= units) return 'the burn fails: Max fee must be less than amount'
  if (burn.domain === cctpOn(name).domain) return 'the burn fails: Domain is local domain'
  return findChain(burn.domain) === undefined ? 'the burn fails: No TokenMessenger for domain' : undefined
}

/** Makes a burn that was judged. @param from wallet that pays, and that gets what is minted. */
export function makeBurn(
  state: SimulatedState,
  {
    call: { token, units, to: desk, route },
    from,
    mark,
  }: { readonly call: SwapCall; readonly from: Address; readonly mark: string },
): void {
  const { burn, minReceived } = route
  if (burn === undefined) throw new Error('only a burn is burned')
  const { network } = state
  state.move(token, { from, to: desk, units, mark })
  state.move(token, { from: desk, to: sandboxMessengerAddress, units })
  state.burn(token, sandboxMessengerAddress, units)
  const word = (value: bigint) => numberToHex(value, { size: 32 })
  const number = (value: number) => numberToHex(value, { size: 4 })
  state.send(
    concat([
      ...[number(1), number(cctpOn(network.name).domain), number(burn.domain), zeroHash],
      ...[toWord(sandboxMessengerAddress), toWord(sandboxMessengerAddress), zeroHash],
      ...[number(burn.minFinality <= finality.fast ? finality.fast : finality.standard), number(0)],
      ...[number(1), toWord(network.tokens[token].address), toWord(from), word(units)],
      ...[toWord(canonicalContracts.bridgeDesk), word(units - minReceived), word(0n), word(0n)],
    ]),
  )
}

/** Finds the simulated chain with a number of Circle's. */
function findChain(domain: number) {
  return chainNames.find(
    (name) => cctpOn(name).messenger === sandboxMessengerAddress && cctpOn(name).domain === domain,
  )
}

function toWord(address: Address): Hex {
  return pad(lowerCaseAddress(address), { size: 32 })
}
