/** Our hashes of escrowed payments, compared with the payer's half of the published package. */
import { AUTH_CAPTURE_ESCROW_ADDRESS, AuthCaptureEvmScheme, EIP3009_TOKEN_COLLECTOR_ADDRESS } from '@x402/evm'
import { zeroAddress } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Address } from '../../src/providers/chain/port.ts'
import {
  bindEscrowSalt,
  deriveEscrowNonce,
  escrowAddress,
  escrowCollectorAddress,
} from '../../src/providers/payment-escrow.ts'

const OPERATOR: Address = '0x8626f6940E2eb28930eFb4CeF49B2d1F2C9C1199'
const TOKEN: Address = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const payer = privateKeyToAccount(`0x${'1'.repeat(64)}`)
const paid = z.looseObject({
  authorization: z.looseObject({ to: z.string(), nonce: z.string(), validBefore: z.string() }),
  salt: z.string(),
  saltNonce: z.string().optional(),
})

const pay = async (more: object) => {
  const { payload } = await new AuthCaptureEvmScheme(payer).createPaymentPayload(2, {
    scheme: 'auth-capture',
    network: 'eip155:84532',
    asset: TOKEN,
    payTo: OPERATOR,
    amount: '5000',
    maxTimeoutSeconds: 60,
    extra: {
      name: 'USDC',
      version: '2',
      captureAuthorizer: OPERATOR,
      captureDeadline: 1_900_000_000,
      refundDeadline: 1_900_000_100,
      feeRecipient: OPERATOR,
      minFeeBps: 1,
      maxFeeBps: 20,
      ...more,
    },
  })
  return paid.parse(payload)
}
const deriveNonce = ({ authorization, salt }: z.output<typeof paid>) =>
  deriveEscrowNonce(
    {
      operator: OPERATOR,
      payer: payer.address,
      receiver: OPERATOR,
      token: TOKEN,
      maxAmount: 5_000n,
      preApprovalExpiry: Number(authorization.validBefore),
      authorizationExpiry: 1_900_000_000,
      refundExpiry: 1_900_000_100,
      minFeeBps: 1,
      maxFeeBps: 20,
      feeReceiver: OPERATOR,
      salt: BigInt(salt),
    },
    84_532,
  )

describe('payments into escrow', () => {
  it('have the addresses and the nonce of the package', async () => {
    expect([escrowAddress, escrowCollectorAddress]).toEqual([
      AUTH_CAPTURE_ESCROW_ADDRESS,
      EIP3009_TOKEN_COLLECTOR_ADDRESS,
    ])
    const signed = await pay({})
    expect(signed.authorization.to).toBe(escrowCollectorAddress)
    expect(signed.authorization.nonce).toBe(deriveNonce(signed))
  })

  it('have the salt of the package where it binds the seller', async () => {
    const signed = await pay({ receiverAuthorizer: TOKEN })
    expect(BigInt(signed.salt)).toBe(bindEscrowSalt(TOKEN, zeroAddress, BigInt(signed.saltNonce ?? '0')))
    expect(signed.authorization.nonce).toBe(deriveNonce(signed))
  })
})
