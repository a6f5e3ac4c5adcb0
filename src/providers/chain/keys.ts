/** The sandbox's keys: worthless, and public by design. */
import { keccak256, stringToHex } from 'viem'
import { type LocalAccount, mnemonicToAccount } from 'viem/accounts'
import { randomToken } from '../../base/ids.ts'
import type { Hex } from '../chain.ts'

/** Default mnemonic of development nodes. */
const developmentMnemonic = 'test test test test test test test test test test test junk'

/** Owner of every sandbox Safe. Its index avoids the first ones, which people use themselves. */
export function sandboxOwner(): LocalAccount {
  return mnemonicToAccount(developmentMnemonic, { addressIndex: 84 })
}

/** Creates the seed of a sponsor's keys for this process only: gateways that share a node must not share keys. */
export function newSandboxSeed(): Hex {
  return keccak256(stringToHex(randomToken(32)))
}
