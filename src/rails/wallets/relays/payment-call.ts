/** Token calls that submit what a holder has signed. */
import { hexToBigInt, parseAbi, parseSignature, size, slice } from 'viem'
import { type Chain, type ContractCall, type Hex, tokenAddress } from '../../../providers/chain/port.ts'
import type { SignedPayment } from './signed-payment.ts'

export const authorizationAbi = parseAbi([
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function nonces(address owner) view returns (uint256)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, bytes signature)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
  'function transferFrom(address from, address to, uint256 value) returns (bool)',
])

type TokenContracts = Pick<Chain, 'name' | 'tokens' | 'signer'>

/** Half the order of secp256k1: of the two equivalent signatures, tokens accept the one with the lower `s`. */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/** Builds the token call that submits the payer's signature: the payment itself, or the permit to collect it. */
export function signedCall(chain: TokenContracts, payment: SignedPayment): ContractCall {
  const { kind, token, payer, destination, units, validAfter, validBefore, nonce } = payment
  const contract = { address: tokenAddress(chain, token), abi: authorizationAbi }
  const signature = signatureArgs(payment.signature)
  if (kind === 'permit') {
    const args = [payer, chain.signer.address, units, validBefore, ...signature]
    return { ...contract, functionName: 'permit', args }
  }
  const args = [payer, destination, units, validAfter, validBefore, nonce, ...signature]
  return { ...contract, functionName: 'transferWithAuthorization', args }
}

/** Builds the call that collects the money a permit allows. */
export function collectCall(chain: TokenContracts, payment: SignedPayment): ContractCall {
  const { token, payer, destination, units } = payment
  const args = [payer, destination, units]
  const address = tokenAddress(chain, token)
  return { address, abi: authorizationAbi, functionName: 'transferFrom', args }
}

/**
 * Checks that a signature is a key's signature in the form tokens accept: 65 bytes, `s` in the lower half of the
 * curve's order, `v` 27 or 28 (0 and 1 count as these). Address recovery alone would also accept the mirrored
 * signature, which tokens reject.
 * @see https://eips.ethereum.org/EIPS/eip-2
 */
export function isKeySignature(signature: Hex): boolean {
  if (size(signature) !== 65) return false
  const [s, v] = [slice(signature, 32, 64), slice(signature, 64)].map((part) => hexToBigInt(part))
  return s !== undefined && s <= HALF_ORDER && (v === 0n || v === 1n || v === 27n || v === 28n)
}

/** Encodes a key's signature in the form that every token accepts; a contract wallet's signature stays as bytes. */
function signatureArgs(signature: Hex): readonly unknown[] {
  if (!isKeySignature(signature)) return [signature]
  const { r, s, yParity } = parseSignature(signature)
  return [27 + yParity, r, s]
}
