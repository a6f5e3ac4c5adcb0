/** Payments that a token's holder signs with their own wallet, for others to submit: EIP-3009 and EIP-2612. */
import { randomBytes } from 'node:crypto'
import { parseAbi } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { signedPaymentTypes as types } from '../../../src/core/base/signed-payment-types.ts'
import type { Address, Chain, Hex } from '../../../src/providers/chain/port.ts'

const FOREVER = 4_000_000_000n
const noncesAbi = parseAbi(['function nonces(address owner) view returns (uint256)'])

/** Overrides of USDC's signing domain. */
interface OtherDomain {
  readonly name?: string
  readonly chainId?: number
  readonly verifyingContract?: Address
}

type SignedChain = Pick<Chain, 'id' | 'tokens' | 'signer'>

const buildDomain = (chain: SignedChain, other: OtherDomain) => ({
  name: 'USDC',
  version: '2',
  chainId: chain.id,
  verifyingContract: chain.tokens.USDC,
  ...other,
})

/** Signs a TransferWithAuthorization of USDC. @returns it in the API's format. */
export async function signAuthorization(
  chain: SignedChain,
  payer: PrivateKeyAccount,
  what: { to?: Address; value?: bigint; validAfter?: bigint; validBefore?: bigint; domain?: OtherDomain },
) {
  const { to = payer.address, value = 1n, validAfter = 0n, validBefore = FOREVER, domain = {} } = what
  const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
  const message = { from: payer.address, to, value, validAfter, validBefore, nonce }
  const primaryType = 'TransferWithAuthorization'
  const signature = await payer.signTypedData({
    domain: buildDomain(chain, domain),
    types,
    primaryType,
    message,
  })
  return {
    from: payer.address,
    to,
    value: value.toString(),
    validAfter: validAfter.toString(),
    validBefore: validBefore.toString(),
    nonce,
    signature,
  }
}

/** Signs a Permit of USDC for the sponsor. @returns it in the API's format. */
export async function signPermit(
  chain: SignedChain,
  payer: PrivateKeyAccount,
  what: { value?: bigint; deadline?: bigint; spender?: Address; domain?: OtherDomain },
) {
  const { value = 1n, deadline = FOREVER, spender = chain.signer.address, domain = {} } = what
  const nonces = { address: chain.tokens.USDC, abi: noncesAbi, functionName: 'nonces', args: [payer.address] }
  const nonce = BigInt(String(await chain.signer.readContract(nonces)))
  const message = { owner: payer.address, spender, value, nonce, deadline }
  const signature = await payer.signTypedData({
    domain: buildDomain(chain, domain),
    types,
    primaryType: 'Permit',
    message,
  })
  return { owner: payer.address, spender, value: value.toString(), deadline: deadline.toString(), signature }
}

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/** The malleable twin of a signature, which tokens reject: `s` in the upper half of the curve's order. */
export function mirror(signature: Hex): Hex {
  const s = ORDER - BigInt(`0x${signature.slice(66, 130)}`)
  const v = signature.endsWith('1b') ? '1c' : '1b'
  return `0x${signature.slice(2, 66)}${s.toString(16).padStart(64, '0')}${v}`
}
