/** The sandbox's keys: of no worth, and known to everybody by design. */
import { keccak256, stringToHex } from 'viem'
import { type LocalAccount, mnemonicToAccount } from 'viem/accounts'
import { randomToken } from '../../base/ids.ts'
import type { Hex } from '../chain.ts'

/** The mnemonic that every development node starts with. */
const developmentMnemonic = 'test test test test test test test test test test test junk'

/** The one owner of every sandbox Safe. Out of the way of the first indexes, which people use for themselves. */
export function sandboxOwner(): LocalAccount {
  return mnemonicToAccount(developmentMnemonic, { addressIndex: 84 })
}

/** What a sponsor's keys are made from, for this process alone: gateways that share a node must not share a key. */
export function newSandboxSeed(): Hex {
  return keccak256(stringToHex(randomToken(32)))
}
