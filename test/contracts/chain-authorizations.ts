/** The chain port's contract for x402 facilitators and gasless transfers: EIP-3009 and EIP-2612. */
import { randomBytes } from 'node:crypto'
import { parseAbi, parseSignature } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, describe, expect, it } from 'vitest'
import { signedPaymentTypes } from '../../src/core/base/signed-payment-types.ts'
import { type Address, type Chain, type Hex, tokenAddress } from '../../src/providers/chain/port.ts'

const authorizationAbi = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function nonces(address owner) view returns (uint256)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
  'function transferFrom(address from, address to, uint256 value) returns (bool)',
])

/** Declares this part of the suite. @param chain returns the chain once the suite has opened it. */
export function testAuthorizations(chain: () => Chain): void {
  const newAddress = () => privateKeyToAccount(generatePrivateKey()).address
  const readBalance = (address: Address) => chain().readBalance('USDC', address)

  it('distinguishes a canceled authorization from a used one', async ({ skip }) => {
    skip(chain().rpcUrl === null, 'the simulated chain has no cancellation')
    const author = privateKeyToAccount(generatePrivateKey())
    const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
    const { USDC: token } = chain().tokens
    const signature = await author.signTypedData({
      domain: { name: 'USDC', version: '2', chainId: chain().id, verifyingContract: token },
      types: {
        CancelAuthorization: [
          { name: 'authorizer', type: 'address' },
          { name: 'nonce', type: 'bytes32' },
        ],
      },
      primaryType: 'CancelAuthorization',
      message: { authorizer: author.address, nonce },
    })
    const named = { token, authorizer: author.address, nonce }
    const later = new Date(Date.now() + 3_600_000)
    expect(await chain().authorizationState(named)).toEqual({ status: 'unused' })
    expect(await chain().isAuthorizationOver(named, later)).toBe(false)
    const hash = await chain().signer.writeContract({
      address: token,
      abi: authorizationAbi,
      functionName: 'cancelAuthorization',
      args: [author.address, nonce, signature],
    })
    await chain().signer.waitForTransactionReceipt({ hash })
    expect(await chain().authorizationState(named)).toEqual({ status: 'canceled' })
    expect(await chain().isAuthorizationOver(named, later)).toBe(true)
  })

  describe('EIP-3009, as an x402 facilitator uses it', () => {
    const payer = privateKeyToAccount(generatePrivateKey())
    const to = newAddress()
    const domain = () => ({
      name: 'USDC',
      version: '2',
      chainId: chain().id,
      verifyingContract: chain().tokens.USDC,
    })

    async function authorize(units: bigint) {
      const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
      const message = {
        from: payer.address,
        to,
        value: units,
        validAfter: 0n,
        validBefore: 4_000_000_000n,
        nonce,
      }
      const typedData = {
        domain: domain(),
        types: signedPaymentTypes,
        primaryType: 'TransferWithAuthorization',
        message,
      } as const
      return { message, typedData, signature: await payer.signTypedData(typedData) }
    }

    function settle(message: Awaited<ReturnType<typeof authorize>>['message'], signature: Hex): Promise<Hex> {
      const { from, value, validAfter, validBefore, nonce } = message
      return chain().signer.writeContract({
        address: chain().tokens.USDC,
        abi: authorizationAbi,
        functionName: 'transferWithAuthorization',
        args: [from, message.to, value, validAfter, validBefore, nonce, signature],
      })
    }

    const isUsed = (nonce: Hex) =>
      chain().signer.readContract({
        address: chain().tokens.USDC,
        abi: authorizationAbi,
        functionName: 'authorizationState',
        args: [payer.address, nonce],
      })

    beforeAll(() => chain().mint([{ token: 'USDC', to: payer.address, units: 1_000n }]))

    it('returns the domain that clients sign for', async () => {
      const readText = (functionName: string) =>
        chain().signer.readContract({ address: chain().tokens.USDC, abi: authorizationAbi, functionName })
      expect([await readText('name'), await readText('version')]).toEqual(['USDC', '2'])
      expect(await chain().signer.getCode({ address: chain().tokens.USDC })).toMatch(/^0x.+/)
      expect(await chain().signer.getCode({ address: payer.address })).toBeUndefined()
    })

    it('settles an authorization once', async () => {
      const { message, typedData, signature } = await authorize(100n)
      const before = await readBalance(to)
      expect(await chain().signer.verifyTypedData({ address: payer.address, ...typedData, signature })).toBe(
        true,
      )
      expect(await isUsed(message.nonce)).toBe(false)
      const named = { token: chain().tokens.USDC, authorizer: payer.address, nonce: message.nonce }
      expect(await chain().authorizationState(named)).toEqual({ status: 'unused' })
      const hash = await settle(message, signature)
      expect(await chain().signer.waitForTransactionReceipt({ hash })).toMatchObject({ status: 'success' })
      expect(await isUsed(message.nonce)).toBe(true)
      expect(await chain().authorizationState(named)).toEqual({ status: 'used', transactionHash: hash })
      const token = chain().tokens.USDC.toLowerCase()
      const [from, authorizer] = [payer.address.toLowerCase(), payer.address.toLowerCase()]
      expect(await chain().transaction(hash)).toMatchObject({
        hash,
        succeeded: true,
        transfers: [
          {
            token,
            from,
            to: to.toLowerCase(),
            units: 100n,
            operationHash: null,
            isUpto: false,
            authorization: { authorizer, nonce: message.nonce },
          },
        ],
      })
      await expect(settle(message, signature)).rejects.toThrow('authorization is used')
      expect(await readBalance(to)).toBe(before + 100n)
    })

    it('refuses a signature by another account, or of another message', async () => {
      const { message, typedData, signature } = await authorize(100n)
      const other = await authorize(200n)
      const before = await readBalance(to)
      expect(await chain().signer.verifyTypedData({ address: newAddress(), ...typedData, signature })).toBe(
        false,
      )
      await expect(settle(message, other.signature)).rejects.toThrow('invalid signature')
      expect(await readBalance(to)).toBe(before)
    })

    it('refuses amounts beyond the payer’s balance', async () => {
      const { message, signature } = await authorize(1_000_000n)
      await expect(settle(message, signature)).rejects.toThrow('exceeds balance')
    })

    it('submits a permit and then transfers its allowance, once', async () => {
      const { address } = chain().signer
      const token = { address: chain().tokens.USDC, abi: authorizationAbi }
      const before = await readBalance(to)
      const signature = await payer.signTypedData({
        domain: domain(),
        types: signedPaymentTypes,
        primaryType: 'Permit',
        message: {
          owner: payer.address,
          spender: address,
          value: 30n,
          nonce: 0n,
          deadline: 4_000_000_000n,
        },
      })
      const { r, s, yParity } = parseSignature(signature)
      const args = [payer.address, address, 30n, 4_000_000_000n, 27 + yParity, r, s]
      await chain().signer.writeContract({ ...token, functionName: 'permit', args })
      expect(
        await chain().signer.readContract({ ...token, functionName: 'nonces', args: [payer.address] }),
      ).toBe(1n)
      const take = { ...token, functionName: 'transferFrom', args: [payer.address, to, 30n] }
      await chain().signer.writeContract(take)
      expect(await readBalance(to)).toBe(before + 30n)
      await expect(chain().signer.writeContract(take)).rejects.toThrow()
      await expect(chain().signer.writeContract({ ...token, functionName: 'permit', args })).rejects.toThrow()
    })

    it('has no authorizations for USDT, like the real token', async () => {
      const read = chain().signer.readContract({
        address: tokenAddress(chain(), 'USDT'),
        abi: authorizationAbi,
        functionName: 'authorizationState',
        args: [payer.address, `0x${'00'.repeat(32)}`],
      })
      await expect(read).rejects.toThrow()
    })
  })
}
