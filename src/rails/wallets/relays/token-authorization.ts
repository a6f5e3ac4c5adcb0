/**
 * Payments signed by a token's holder and submitted by anyone: an EIP-3009 authorization, or an EIP-2612 permit for
 * the sponsor, who then transfers. Both are checked here against the chain's state before any gas is spent.
 * @see https://eips.ethereum.org/EIPS/eip-3009
 * @see https://eips.ethereum.org/EIPS/eip-2612
 */
import { recoverTypedDataAddress } from 'viem'
import { z } from 'zod'
import { signedPaymentTypes as types } from '../../../core/base/signed-payment-types.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { chainFacts, chainNames } from '../../../core/money/chains.ts'
import { decimalOf, type Stablecoin } from '../../../core/money/money.ts'
import {
  type Address,
  type Chain,
  type Hex,
  isRefusedCall,
  tokenAddress,
} from '../../../providers/chain/port.ts'
import { lowerCase } from '../store.ts'
import { authorizationAbi, isKeySignature, signedCall } from './payment-call.ts'
import type { SignedPayment } from './signed-payment.ts'

/** Tokens that support both standards; Tether supports neither. */
export const authorizingTokens = ['USDC', 'EURC', 'PYUSD'] as const satisfies readonly Stablecoin[]

/** Ids of public chains of the same stablecoins, for which payers sign by mistake. */
const OTHER_CHAINS = [...chainNames.map((name) => chainFacts(name).id), 11155111]

/** Domains of the issuer's tokens on every chain, for which payers sign by mistake. */
const issuedDomains = chainNames.flatMap((name) => {
  const { id: chainId, tokens } = chainFacts(name)
  return Object.values(tokens).map(({ address: verifyingContract, ...rest }) => ({
    ...rest,
    chainId,
    verifyingContract,
  }))
})

/** Number of a payer's latest permits that a signature is compared with. */
const MAX_OLD_PERMITS = 10n

/** A chain whose tokens are read. */
type TokenReader = Pick<Chain, 'name' | 'tokens' | 'signer'>

export type AuthorizationChain = Pick<Chain, 'id' | 'name' | 'tokens' | 'signer' | 'readBalance'>

/** Reasons for a token to reject a signed payment. `refused`: for a reason of its own, such as a blocked payer. */
export const rejections = [
  'expired',
  'not_yet_valid',
  'nonce_used',
  'signature',
  'domain',
  'balance',
  'refused',
] as const

export type Rejection = (typeof rejections)[number]

/**
 * Checks a payment as its token will.
 * @param now time of the call.
 * @throws Failure `authorization_rejected` with `reason`.
 */
export async function judgePayment(
  chain: AuthorizationChain,
  payment: SignedPayment,
  now: Date,
): Promise<void> {
  const second = BigInt(Math.floor(now.getTime() / 1000))
  const last = payment.kind === 'permit' ? payment.validBefore : payment.validBefore - 1n
  if (second > last) throw buildRejection('expired', 'The signed payment has expired.')
  if (payment.kind === 'authorization' && second <= payment.validAfter)
    throw buildRejection('not_yet_valid', 'The signed payment is not valid yet.')
  if (await isUsed(chain, payment)) throw buildUsedFailure()
  await requireSignature(chain, payment)
  const { token, units, payer } = payment
  const balance = await chain.readBalance(token, payer)
  if (balance >= units) return requireAccepted(chain, payment, now)
  const [has, needs] = [balance, units].map((amount) => decimalOf({ asset: token, units: amount }))
  throw buildRejection('balance', `The payer has ${has} ${token}; ${needs} needed.`)
}

/** Simulates the call, because the token may apply rules that are not checked here. */
async function requireAccepted(chain: AuthorizationChain, payment: SignedPayment, now: Date): Promise<void> {
  try {
    await chain.signer.readContract(signedCall(chain, payment))
  } catch (error) {
    throw isRefusedCall(error) ? explainTokenRefusal(payment, error.message, now) : error
  }
}

/** Patterns of token error messages, by Circle and the interfaces. The first match counts. */
const refusals: readonly (readonly [RegExp, Rejection])[] = [
  [/used or cancell?ed/i, 'nonce_used'],
  [/exceeds balance/i, 'balance'],
  [/invalid signature/i, 'signature'],
  // Tokens use one message for both cases; the clock distinguishes them.
  [/not yet valid/i, 'not_yet_valid'],
  [/expired/i, 'expired'],
]

/** Builds the error for a rejection by the token. @param words error message of the token, which varies by token. */
export function explainTokenRefusal(
  { validBefore }: Pick<SignedPayment, 'validBefore'>,
  words: string,
  now: Date,
): Failure {
  const isLate = BigInt(Math.floor(now.getTime() / 1000)) >= validBefore
  const found = refusals.find(([pattern]) => pattern.test(words))?.[1] ?? 'refused'
  const reason = found === 'not_yet_valid' && isLate ? 'expired' : found
  return buildRejection(reason, `The token rejects it: ${words}.`)
}

/** Checks whether the token has used the nonce, which it accepts only once. */
export async function isUsed(
  chain: TokenReader,
  { kind, token, payer, nonce }: Pick<SignedPayment, 'kind' | 'token' | 'payer' | 'nonce'>,
): Promise<boolean> {
  if (kind === 'permit') return (await readPermitNonce(chain, token, payer)) !== BigInt(nonce)
  const used = await read(chain, token, 'authorizationState', [payer, nonce])
  return z.boolean().parse(used)
}

/** Reads the nonce of a payer's next permit, which is the number of permits used. */
export async function readPermitNonce(
  chain: TokenReader,
  token: Stablecoin,
  payer: Address,
): Promise<bigint> {
  return z.bigint().parse(await read(chain, token, 'nonces', [payer]))
}

/** Reads the sponsor's remaining allowance over a payer's tokens. */
export async function sponsorAllowance(
  chain: TokenReader,
  token: Stablecoin,
  payer: Address,
): Promise<bigint> {
  return z.bigint().parse(await read(chain, token, 'allowance', [payer, chain.signer.address]))
}

function read(
  chain: TokenReader,
  token: Stablecoin,
  functionName: string,
  args: readonly unknown[] = [],
): Promise<unknown> {
  const address = tokenAddress(chain, token)
  return chain.signer.readContract({ address, abi: authorizationAbi, functionName, args })
}

async function requireSignature(chain: AuthorizationChain, payment: SignedPayment): Promise<void> {
  const { token, payer, signature } = payment
  if (!isKeySignature(signature) && !(await hasCode(chain, payer)))
    throw buildRejection(
      'signature',
      'The signature does not have the form that tokens accept from a key: 65 bytes, s in the lower half of the curve’s order, v 27 or 28.',
    )
  const data = buildTypedData(chain, payment)
  const domain = await readDomain(chain, token)
  if (await chain.signer.verifyTypedData({ address: payer, domain, ...data, signature })) return
  // A signature that verifies under another domain was made by the payer for another token or chain.
  const others = await Promise.all(
    authorizingTokens
      .filter((other) => chain.tokens[other] !== undefined)
      .map((other) => readDomain(chain, other)),
  )
  const elsewhere = [...others, ...OTHER_CHAINS.map((chainId) => ({ ...domain, chainId })), ...issuedDomains]
  for (const other of elsewhere) {
    const signer = await recoverTypedDataAddress({ domain: other, ...data, signature }).catch(() => undefined)
    if (signer === undefined || lowerCase(signer) !== lowerCase(payer)) continue
    throw buildRejection('domain', `The signature is for a domain other than ${token} on ${chain.name}.`)
  }
  if (await isOldPermit(chain, payment, domain)) throw buildUsedFailure()
  throw buildRejection('signature', 'The signature is not the payer’s over these values.')
}

/** Checks whether the payer is a contract, which verifies signatures itself (EIP-1271). */
async function hasCode({ signer }: Pick<Chain, 'signer'>, address: Address): Promise<boolean> {
  const code = await signer.getCode({ address })
  return code !== undefined && code !== '0x'
}

/** Checks whether a permit is one of the payer's latest: its nonce is signed but not sent. */
async function isOldPermit(
  chain: AuthorizationChain,
  payment: SignedPayment,
  domain: Awaited<ReturnType<typeof readDomain>>,
): Promise<boolean> {
  const { kind, payer, signature } = payment
  if (kind !== 'permit') return false
  const next = BigInt(payment.nonce)
  for (let back = 1n; back <= MAX_OLD_PERMITS && back <= next; back += 1n) {
    const data = buildTypedData(chain, { ...payment, nonce: (next - back).toString() })
    const signer = await recoverTypedDataAddress({ domain, ...data, signature }).catch(() => undefined)
    if (signer !== undefined && lowerCase(signer) === lowerCase(payer)) return true
  }
  return false
}

function buildUsedFailure(): Failure {
  return buildRejection('nonce_used', 'The signed payment was already used or cancelled.')
}

function buildTypedData({ signer }: Pick<Chain, 'signer'>, payment: SignedPayment) {
  const { units: value, payer, destination, nonce, validAfter, validBefore } = payment
  if (payment.kind === 'permit') {
    const message = {
      owner: payer,
      spender: signer.address,
      value,
      nonce: BigInt(nonce),
      deadline: validBefore,
    }
    return { types, primaryType: 'Permit', message } as const
  }
  const message = { from: payer, to: destination, value, validAfter, validBefore, nonce: toHex(nonce) }
  return { types, primaryType: 'TransferWithAuthorization', message } as const
}

async function readDomain(chain: Pick<Chain, 'id'> & TokenReader, token: Stablecoin) {
  const [name, version] = await Promise.all([read(chain, token, 'name'), read(chain, token, 'version')])
  return {
    name: z.string().parse(name),
    version: z.string().parse(version),
    chainId: chain.id,
    verifyingContract: tokenAddress(chain, token),
  }
}

function toHex(text: string): Hex {
  return `0x${text.replace(/^0x/, '')}`
}

const hints: Readonly<Record<Rejection, string>> = {
  expired: 'Sign a new one with a later expiry.',
  not_yet_valid: 'Send it again once it is valid.',
  nonce_used: 'It was already carried out or cancelled: sign a new one with another nonce.',
  signature: 'Sign exactly the values that are sent, with the payer’s key.',
  domain: 'Sign for the token’s own domain on this chain: its name(), version(), chain id and address.',
  balance: 'Fund the payer’s address with the amount first.',
  refused: 'Ask the token’s issuer for the reason; sending it again does not help.',
}

const NOTHING_SENT = ' Nothing was sent and no gas was spent.'

/** Builds the rejection of a signed payment before anything was sent. */
export function buildRejection(reason: Rejection, detail: string): Failure {
  return buildLateRejection(reason, `${detail}${NOTHING_SENT}`)
}

/** Builds the rejection of a signed payment whose relay had started. */
export function buildLateRejection(reason: Rejection, detail: string): Failure {
  return new Failure('authorization_rejected', detail, { reason, hint: hints[reason] })
}
