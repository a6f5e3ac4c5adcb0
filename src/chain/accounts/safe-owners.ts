/** Which of the gateway's keys owns a deployed Safe, by what the chain shows. */
import { LRUCache } from 'lru-cache'
import type { LocalAccount } from 'viem/accounts'
import { Failure } from '../../core/failures/failure.ts'
import { type Address, KEY_MISSING, type SafeState, type Wallet } from '../../providers/chain/port.ts'
import { safeAbi } from '../contracts/abi.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type AccountContracts, lowerCaseAddress } from '../rpc/networks.ts'
import type { KeyRing } from './key-ring.ts'
import type { Wallets } from './wallets.ts'

/** Number of Safes that are known to have the key of now. */
const MAX_KNOWN = 10_000

/** Sentinel before the first entry of a Safe's list of modules. */
const MODULES_START: Address = '0x0000000000000000000000000000000000000001'

export interface SafeOwners {
  /**
   * Finds the key that signs for a deployed Safe; the present one for a Safe that no key of the gateway owns.
   * @throws Failure `provider_unavailable` when a key of the gateway owns it that this process does not have: nothing is signed.
   */
  findKey(safe: Address): Promise<LocalAccount>
  /** Reads the gateway's key that owns a deployed Safe, whether this gateway has it or not; undefined: none does. */
  readOwner(safe: Address): Promise<Address | undefined>
  /** Has the chain be asked again: a signature by the known key was rejected. */
  doubt(safe: Address): void
  /** Has operations of a Safe wait for a change of its owner, which would invalidate their signatures. */
  hold(safe: Address, change: Promise<unknown>): void
  forget(): void
}

export function createSafeOwners({ client, keys }: { client: NodeClient; keys: KeyRing }): SafeOwners {
  // Until a key is replaced, all Safes have the same.
  const settled = new LRUCache<Address, true>({ max: MAX_KNOWN })
  const doubted = new Set<Address>()
  const changing = new Map<Address, Promise<unknown>>()

  async function readOwner(safe: Address): Promise<Address | undefined> {
    return keys.findKnown(
      await client.readContract({ address: safe, abi: safeAbi, functionName: 'getOwners' }),
    )
  }

  return {
    async findKey(safe) {
      await changing.get(safe)
      if (settled.has(safe) || (!keys.isRotated && !doubted.has(safe))) return keys.current
      const owner = await readOwner(safe)
      // It was handed over, or it is lost: the chain rejects what the gateway signs.
      const key = owner === undefined ? keys.current : keys.find(owner)
      if (key === undefined) throw missingKey(client.chain.name, safe, owner)
      doubted.delete(safe)
      if (owner === undefined) return key
      if (key === keys.current) settled.set(safe, true)
      return key
    },
    readOwner,
    doubt(safe) {
      settled.delete(safe)
      doubted.add(safe)
    },
    hold(safe, change) {
      const held = change
        .catch(() => undefined)
        .finally(() => {
          if (changing.get(safe) === held) changing.delete(safe)
        })
      changing.set(safe, held)
    },
    forget() {
      settled.clear()
      doubted.clear()
    },
  }
}

/** Error of a Safe whose owner is another key than those of this gateway. @param owner undefined: no key of any gateway here. */
export function missingKey(chain: string, safe: Address, owner: Address | undefined): Failure {
  const whose = owner === undefined ? 'a key that is not the gateway’s' : `the key ${owner}`
  return new Failure(
    'provider_unavailable',
    `The smart account ${safe} on ${chain} belongs to ${whose}, which this gateway does not have; nothing was signed.`,
    {
      reason: KEY_MISSING,
      retryAfter: 10,
      hint: 'The operator sets CHAIN_OWNER_KEY and CHAIN_OWNER_KEY_PREVIOUS, as docs/keys.md says.',
    },
  )
}

/** Reads who can act for a Safe; null while it is not deployed. */
export async function readSafeState(
  {
    client,
    contracts,
    keys,
    wallets,
  }: { client: NodeClient; contracts: AccountContracts; keys: KeyRing; wallets: Wallets },
  wallet: Wallet,
  blockTag: 'latest' | 'safe',
): Promise<SafeState | null> {
  const safe = wallets.findSafe(wallet).address
  if (!(await client.getCode({ address: safe, blockTag }))) return null
  const at = { address: safe, abi: safeAbi, blockTag } as const
  const [owners, [modules]] = await Promise.all([
    client.readContract({ ...at, functionName: 'getOwners' }),
    client.readContract({ ...at, functionName: 'getModulesPaginated', args: [MODULES_START, 50n] }),
  ])
  const known = [contracts.module, contracts.allowances].map(lowerCaseAddress)
  const person = wallet.owner.kind === 'gateway' ? undefined : wallets.findSigner(wallet.owner).address
  const isSame = (one: Address, other: Address) => lowerCaseAddress(one) === lowerCaseAddress(other)
  return {
    owners: owners.map(lowerCaseAddress),
    isOurs: (await keys.findKnown(owners)) !== undefined,
    isPersons: person !== undefined && owners.some((owner) => isSame(owner, person)),
    hasOtherModules: modules.some((module) => !known.includes(lowerCaseAddress(module))),
  }
}
