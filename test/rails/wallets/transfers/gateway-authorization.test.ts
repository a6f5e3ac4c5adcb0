import { describe, expect, it } from 'vitest'
import { toAuthorization } from '../../../../src/rails/wallets/transfers/authorize-transfer.ts'
import { gatewayAuthorization } from '../../../../src/rails/wallets/transfers/gateway-authorization.ts'

const owned = { owner: { kind: 'eoa', address: `0x${'1'.repeat(40)}` } } as const

describe('a payment without a signature', () => {
  it('is the gateway’s from a wallet that it owns, and a key’s within its allowance from any other', () => {
    const gateway = { owner: { kind: 'gateway' } } as const
    expect(gatewayAuthorization(gateway, null).authorization).toEqual({ kind: 'gateway' })
    expect(gatewayAuthorization(owned, 'key_1').authorization).toEqual({
      kind: 'allowance',
      agentId: 'key_1',
    })
  })

  it('is nobody’s from a wallet that its owner controls', () => {
    expect(() => gatewayAuthorization(owned, null)).toThrow(
      expect.objectContaining({ code: 'signature_rejected' }),
    )
    const unsigned = { message: '', signature: undefined, assertion: undefined }
    expect(() => toAuthorization({ by: 'allowance', signerId: null }, unsigned)).toThrow('allowance')
  })
})
