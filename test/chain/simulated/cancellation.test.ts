/** The simulated tokens cancel authorizations as the real ones do. @see https://eips.ethereum.org/EIPS/eip-3009 */
import { parseAbi, parseSignature } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { expect, it } from 'vitest'
import { sandboxTokens } from '../../../src/chain/rpc/networks.ts'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { silentLog } from '../../../src/core/base/log.ts'

const abi = parseAbi(['function cancelAuthorization(address, bytes32, uint8, bytes32, bytes32)'])
const noon = new Date('2027-01-04T12:00:00Z')
const { address: token } = sandboxTokens.USDC
const nonce = `0x${'7'.repeat(64)}` as const

async function sign(by: ReturnType<typeof privateKeyToAccount>, authorizer: `0x${string}`) {
  const signature = await by.signTypedData({
    domain: { name: 'USDC', version: '2', chainId: 84_532, verifyingContract: token },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer, nonce },
  })
  const { r, s, yParity } = parseSignature(signature)
  const args = [authorizer, nonce, yParity + 27, r, s]
  return { address: token, abi, functionName: 'cancelAuthorization', args }
}

it('cancels an authorization that its author signs away, once', async () => {
  const chain = await createSimulatedChain({ clock: () => noon, log: silentLog })
  const author = privateKeyToAccount(`0x${'1'.repeat(64)}`)
  const stranger = privateKeyToAccount(`0x${'2'.repeat(64)}`)
  const authorization = { token, authorizer: author.address, nonce }
  const state = () => chain.authorizationState(authorization)
  await expect(chain.signer.writeContract(await sign(stranger, author.address))).rejects.toThrow(/signature/)
  expect(await state()).toEqual({ status: 'unused' })
  expect(await chain.isAuthorizationOver(authorization, new Date(noon.getTime() + 1))).toBe(false)
  await chain.signer.writeContract(await sign(author, author.address))
  expect(await state()).toEqual({ status: 'canceled' })
  expect(await chain.isAuthorizationOver(authorization, new Date(noon.getTime() + 1))).toBe(true)
  await expect(chain.signer.writeContract(await sign(author, author.address))).rejects.toThrow(
    /used or canceled/,
  )
})
