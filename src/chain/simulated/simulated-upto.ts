/** Permit2 and the `upto` proxy of the simulated chain: computes what `SandboxPermit2.sol` and `SandboxUptoProxy.sol` would do. */
import { decodeFunctionData, getAddress, hashTypedData, parseAbi, toHex } from 'viem'
import { uptoTypes } from '../../core/base/signed-payment-types.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import { splitNonce } from '../relay/permits.ts'
import { lowerCaseAddress, permit2Address, uptoProxyAddress } from '../rpc/networks.ts'
import { requireAuthorizing } from './simulated-network.ts'
import { type CallContext, prepareWrite, read, requireSigned, type SimulatedCall } from './simulated-token.ts'

const abi = parseAbi([
  'struct TokenPermissions { address token; uint256 amount; }',
  'struct PermitTransferFrom { TokenPermissions permitted; uint256 nonce; uint256 deadline; }',
  'struct Witness { address to; address facilitator; uint256 validAfter; }',
  'function settle(PermitTransferFrom permit, uint256 amount, address owner, Witness witness, bytes signature)',
  'function nonceBitmap(address owner, uint256 word) view returns (uint256 bits)',
])

/** Builds the mark of a used Permit2 nonce in the simulated books. */
export function permitMark(owner: Address, nonce: Hex): string {
  return `permit2|${lowerCaseAddress(owner)}|${nonce.toLowerCase()}`
}

export function isUptoContract(address: Address): boolean {
  return [permit2Address, uptoProxyAddress].some((one) => lowerCaseAddress(one) === lowerCaseAddress(address))
}

/** Checks an encoded call of either contract. @throws Error with the contract's reason when it would revert. */
export async function judgeUptoCall(context: CallContext, data: Hex): Promise<SimulatedCall> {
  const call = decode(data)
  if (call === undefined) throw new Error('execution reverted')
  const { state, clock, caller } = context
  if (call.functionName === 'nonceBitmap') {
    const [owner, word] = call.args
    return read(
      state
        .usedMarks(permitMark(owner, '0x').slice(0, -2))
        .reduce((bits, nonce) => bits | bitIn(nonce, word), 0n),
    )
  }
  const [{ permitted, nonce, deadline }, amount, owner, witness, signature] = call.args
  const symbol = requireAuthorizing(state.network, permitted.token)
  const mark = permitMark(owner, toHex(nonce, { size: 32 }))
  const check = () => {
    const second = BigInt(Math.floor(clock().getTime() / 1000))
    if (lowerCaseAddress(caller) !== lowerCaseAddress(witness.facilitator))
      throw new Error('UnauthorizedFacilitator')
    if (amount > permitted.amount) throw new Error('AmountExceedsPermitted')
    if (second < witness.validAfter) throw new Error('PaymentTooEarly')
    if (second > deadline) throw new Error('SignatureExpired')
    if (state.isUsed(mark)) throw new Error('InvalidNonce')
    if (state.readAllowance(symbol, owner, permit2Address) < amount)
      throw new Error('ERC20: transfer amount exceeds allowance')
    const refusal = state.findRefusal(symbol, owner, amount)
    if (refusal !== undefined) throw new Error(refusal)
  }
  const hash = hashTypedData({
    domain: { name: 'Permit2', chainId: state.network.chainId, verifyingContract: permit2Address },
    types: uptoTypes,
    primaryType: 'PermitWitnessTransferFrom',
    message: { permitted, spender: uptoProxyAddress, nonce, deadline, witness },
  })
  await requireSigned(getAddress(owner), hash, [signature], 'InvalidSigner')
  return prepareWrite(check, () => {
    const left = state.readAllowance(symbol, owner, permit2Address) - amount
    state.allow(symbol, owner, permit2Address, left)
    state.move(symbol, { from: owner, to: witness.to, units: amount, mark, isUpto: true })
  })
}

function bitIn(nonce: string, word: bigint): bigint {
  const place = splitNonce(`0x${nonce.replace(/^0x/, '')}`)
  return place.word === word ? 1n << place.bit : 0n
}

function decode(data: Hex) {
  try {
    return decodeFunctionData({ abi, data })
  } catch {
    return undefined
  }
}
