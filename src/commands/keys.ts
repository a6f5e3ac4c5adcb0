/** `bursar keys rotate`: seals everything anew under DATA_KEY that DATA_KEY_PREVIOUS had sealed. */

import { systemClock } from '../core/base/clock.ts'
import { openDataKey, storeRoot } from '../records/decisions/data-key.ts'
import { claimDeployment } from '../records/decisions/deployment.ts'
import { reseal, sealedColumns } from '../records/decisions/reseal.ts'
import { onAuditDatabase } from './audit-database.ts'

/** @returns the exit code: 1 if no key opens some value. @throws Error whose message is for a person. */
export async function keys(
  [action, ...rest]: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if (action !== 'rotate' || rest.length > 0) throw new Error('Usage: bursar keys rotate')
  return onAuditDatabase(
    env,
    async (database, { dataKey: current, dataKeyPrevious: previous }) => {
      if (current === null || previous === null)
        throw new Error('Set DATA_KEY to the new key and DATA_KEY_PREVIOUS to the one before.')
      const dataKey = await openDataKey(database, { current, previous })
      await claimDeployment(database, { dataKey, chainId: null, chainOwner: null }, systemClock())
      let [changed, unreadable] = [0, 0]
      for (const place of sealedColumns) {
        const done = await reseal(database, dataKey, place)
        changed += done.changed
        unreadable += done.unreadable.length
        if (done.changed > 0) process.stdout.write(`${done.name}: ${done.changed}\n`)
        for (const id of done.unreadable)
          process.stderr.write(`${done.name} of ${id}: neither key opens it\n`)
      }
      if (unreadable > 0) return 1
      await storeRoot(database, dataKey, systemClock())
      process.stdout.write(
        changed === 0
          ? 'Everything is sealed under DATA_KEY. Remove DATA_KEY_PREVIOUS once every gateway has this DATA_KEY.\n'
          : `${changed} values are now sealed under DATA_KEY. Run this again until nothing is left.\n`,
      )
      return 0
    },
    'Stop the gateway first: the embedded database has one process.',
  )
}
