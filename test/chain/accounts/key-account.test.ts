import { keccak256, stringToHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, it } from 'vitest'
import { toKeyAccount } from '../../../src/chain/accounts/key-account.ts'
import { createEnvironmentKey } from '../../../src/providers/keys/environment.ts'

it('signs everything as an account of viem with the same key', async () => {
  const key = generatePrivateKey()
  const [own, known] = [toKeyAccount(createEnvironmentKey(key)), privateKeyToAccount(key)]
  const hash = keccak256(stringToHex('digest'))
  const typed = {
    domain: { name: 'Bursar', chainId: 1 },
    types: { Payment: [{ name: 'value', type: 'uint256' }] },
    primaryType: 'Payment',
    message: { value: 5n },
  } as const
  const transaction = {
    type: 'eip1559',
    chainId: 8453,
    nonce: 3,
    to: known.address,
    value: 7n,
    gas: 21_000n,
    maxFeePerGas: 5n,
    maxPriorityFeePerGas: 1n,
  } as const
  expect(own.address).toBe(known.address)
  expect(await own.sign?.({ hash })).toBe(await known.sign({ hash }))
  expect(await own.signMessage({ message: 'hello' })).toBe(await known.signMessage({ message: 'hello' }))
  expect(await own.signTypedData(typed)).toBe(await known.signTypedData(typed))
  expect(await own.signTransaction(transaction)).toBe(await known.signTransaction(transaction))
})
