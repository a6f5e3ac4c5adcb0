/** A key, wherever it is, as an account that signs for chains. */
import {
  hashMessage,
  hashTypedData,
  keccak256,
  parseSignature,
  type SerializeTransactionFn,
  serializeTransaction,
} from 'viem'
import { type LocalAccount, toAccount } from 'viem/accounts'
import type { ChainKey } from '../../providers/keys/port.ts'

export function toKeyAccount({ address, sign }: ChainKey): LocalAccount {
  return toAccount({
    address,
    sign: ({ hash }) => sign(hash),
    signMessage: ({ message }) => sign(hashMessage(message)),
    signTypedData: (input) => sign(hashTypedData(input)),
    async signTransaction(transaction, options) {
      const serializer: SerializeTransactionFn = options?.serializer ?? serializeTransaction
      const signature = await sign(keccak256(await serializer(transaction)))
      return serializer(transaction, parseSignature(signature))
    },
  })
}
