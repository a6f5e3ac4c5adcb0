/** Doctor check of the owner's key: how many smart accounts still have a former one, per chain. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { silentLog } from '../core/base/log.ts'
import {
  countOwnersLeft,
  type OwnersLeft,
  readOwnerBook,
  readRotations,
  readWatchedChains,
} from '../rails/wallets/owners/owner-store.ts'
import { openDatabase } from '../runtime.ts'
import type { CheckContext } from './doctor-parts.ts'
import { type Finding, fail, ok, warn } from './doctor-probes.ts'

const CHECK = 'owners'

/** Reports nothing where the database cannot be read, which its own check tells, and before a key was replaced. */
export async function checkOwners({ config }: CheckContext): Promise<Finding[]> {
  const { databaseUrl, dataDirectory } = config
  if (databaseUrl === null && (dataDirectory === 'memory' || !existsSync(join(dataDirectory, 'cluster'))))
    return []
  const database = await openDatabase(config, silentLog).catch(() => null)
  if (database === null) return []
  try {
    if ((await database.pendingMigrations()).length > 0) return []
    const [book, rotations, watched] = await Promise.all([
      readOwnerBook(database),
      readRotations(database),
      readWatchedChains(database),
    ])
    if (book === null || rotations.length === 0) return []
    const chains = [...new Set([...config.chains.map(({ name }) => name), ...watched])]
    const counts = await countOwnersLeft(database, { chains, to: book.target })
    const isOpen = rotations.some(({ isFinished }) => !isFinished)
    return [
      judge(counts, { isOpen, hasPrevious: config.chains[0].ownerKeyPrevious !== null, owner: book.target }),
    ]
  } catch (error) {
    return [
      fail(
        CHECK,
        error instanceof Error ? error.message : String(error),
        'Start the database, or correct DATABASE_URL.',
      ),
    ]
  } finally {
    await database.close()
  }
}

/** @property isOpen the replacement is not finished. */
function judge(
  counts: readonly OwnersLeft[],
  { isOpen, hasPrevious, owner }: { isOpen: boolean; hasPrevious: boolean; owner: string },
): Finding {
  const count = ({ left, unsigned }: OwnersLeft) => (isOpen ? left : unsigned)
  const perChain = counts.map((one) => `${one.chain} ${count(one)}`).join(', ')
  const lost = counts.filter((one) => one.lost > 0)
  if (lost.length > 0)
    return fail(
      CHECK,
      `smart accounts that belong to somebody unknown: ${lost.map((one) => `${one.chain} ${one.lost}`).join(', ')}`,
      'GET /api/admin/alarms names each. Whoever had the former key has taken it: see docs/keys.md, "If it leaked".',
    )
  const ready = counts.reduce((sum, one) => sum + one.ready, 0)
  const waiting = ready === 0 ? '' : `; ${ready} change with their deployment`
  const told = `smart accounts that still have a former key: ${perChain}${waiting}`
  if (counts.some((one) => count(one) > 0))
    return warn(
      CHECK,
      told,
      hasPrevious
        ? 'Keep CHAIN_OWNER_KEY_PREVIOUS until none is left.'
        : 'Set CHAIN_OWNER_KEY_PREVIOUS to the former key until none is left.',
    )
  if (isOpen)
    return warn(CHECK, told, 'Start a gateway with the new CHAIN_OWNER_KEY, which ends the replacement.')
  return ok(CHECK, `${told}; ${owner} owns all${hasPrevious ? ': remove CHAIN_OWNER_KEY_PREVIOUS' : ''}`)
}
