/** The sandbox's keys: worthless, and public by design. */
import { keccak256, stringToHex } from 'viem'
import { type LocalAccount, privateKeyToAccount } from 'viem/accounts'
import { randomToken } from '../core/base/ids.ts'
import type { Hex } from '../providers/chain/port.ts'

/**
 * Key 84 of the mnemonic that development nodes publish (`test test … junk`, m/44'/60'/0'/0/84); the first ones people use
 * themselves. It is stated because deriving it takes a tenth of a second.
 */
const SANDBOX_OWNER_KEY = '0xbeab65f35a77de7af63a97748e6a3bb90372f9225ebc6e8d0f1dc14098ac683a'

/** Owner of every sandbox Safe. */
export function sandboxOwner(): LocalAccount {
  return privateKeyToAccount(SANDBOX_OWNER_KEY)
}

/** Creates the seed of a sponsor's keys for this process only: gateways that share a node must not share keys. */
export function newSandboxSeed(): Hex {
  return keccak256(stringToHex(randomToken(32)))
}
