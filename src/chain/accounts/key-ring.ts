/**
 * The gateway's keys that own Safes: the one of now and, while it is being replaced, another. Addresses are computed from the first
 * owner, which only the database knows once a key was replaced. One ring serves every chain.
 */
import type { LocalAccount } from 'viem/accounts'
import type { Address, OwnerBook } from '../../providers/chain/port.ts'
import { lowerCaseAddress } from '../rpc/networks.ts'

export interface KeyRing {
  readonly current: LocalAccount
  readonly previous: LocalAccount | undefined
  /** Key that addresses are computed from where they state none. */
  readonly first: Address
  /** True once Safes may have different owners, which the chain must be asked for. */
  readonly isRotated: boolean
  /** True while Safes of the previous key are to get the present one. A gateway that only knows the next key changes none. */
  readonly isReplacing: boolean
  /** Finds the key with an address; undefined for one that this gateway does not have. */
  find(address: Address): LocalAccount | undefined
  /**
   * Finds an address that is, was or will be a key of the gateway, the present one first; also a key that another gateway has brought
   * since this one was started. @throws when the database, which is asked about unknown ones, does not answer.
   */
  findKnown(addresses: readonly Address[]): Promise<Address | undefined>
  adopt(book: OwnerBook): void
  readonly findSwaps: OwnerBook['findSwaps']
}

export function createKeyRing(current: LocalAccount, previous?: LocalAccount): KeyRing {
  let book: OwnerBook | undefined
  const keys = previous === undefined ? [current] : [current, previous]
  const isSame = (one: Address, other: Address) => lowerCaseAddress(one) === lowerCaseAddress(other)
  const find = (address: Address) => keys.find((key) => isSame(key.address, address))
  const knows = (address: Address) =>
    find(address) !== undefined || (book?.known.some((known) => isSame(known, address)) ?? false)
  return {
    current,
    previous,
    get first() {
      return book?.first ?? current.address
    },
    get isRotated() {
      return previous !== undefined || !isSame(book?.first ?? current.address, current.address)
    },
    get isReplacing() {
      if (book === undefined || previous === undefined) return false
      return (
        isSame(book.target, current.address) && book.known.some((known) => isSame(known, previous.address))
      )
    },
    find,
    async findKnown(addresses) {
      const findAmong = () => addresses.find((one) => isSame(one, current.address)) ?? addresses.find(knows)
      const known = findAmong()
      if (known !== undefined || book === undefined) return known
      book = { ...book, known: await book.readKnown() }
      return findAmong()
    },
    adopt(given) {
      book = given
    },
    findSwaps: async (chain, safe) => (await book?.findSwaps(chain, safe)) ?? [],
  }
}
