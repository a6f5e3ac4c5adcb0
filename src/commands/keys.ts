/**
 * `bursar keys rotate`: seals everything anew under DATA_KEY that DATA_KEY_PREVIOUS had sealed. `bursar keys wrap`: encrypts a secret by
 * a key in a token or a cloud, for its variable.
 */

import { systemClock } from '../core/base/clock.ts'
import { readKeyConfig } from '../core/config/read-config.ts'
import { openDataKey, openDataKeys, storeRoot } from '../records/decisions/data-key.ts'
import { claimDeployment } from '../records/decisions/deployment.ts'
import { reseal, sealedColumns } from '../records/decisions/reseal.ts'
import { onAuditDatabase, withKeys } from './audit-database.ts'
import { wrappableSecrets } from './table.ts'

/** @returns the exit code: 1 if no key opens some value. @throws Error whose message is for a person. */
export async function keys(
  [action, ...rest]: readonly string[],
  { with: reference }: { readonly with?: string | undefined },
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const [name, ...more] = rest
  if (action === 'wrap' && isWrappable(name) && more.length === 0 && reference !== undefined)
    return wrap(name, reference, env)
  if (action !== 'rotate' || rest.length > 0 || reference !== undefined)
    throw new Error(`Usage: bursar keys rotate | keys wrap ${wrappableSecrets.join(' | ')} --with REFERENCE`)
  return onAuditDatabase(
    env,
    async (database, config) => {
      const { current, previous } = await withKeys(config, (keys) => openDataKeys(keys, config))
      if (current === null || previous === null)
        throw new Error('Set DATA_KEY to the new key and DATA_KEY_PREVIOUS to the one before.')
      const dataKey = await openDataKey(database, { current, previous })
      await claimDeployment(database, { dataKey, chainId: null, chainOwners: null }, systemClock())
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

function isWrappable(name: string | undefined): name is (typeof wrappableSecrets)[number] {
  return wrappableSecrets.some((one) => one === name)
}

/** Prints the variable's new value. One that is wrapped already is opened first, so that its wrapping key can be replaced. */
async function wrap(
  name: (typeof wrappableSecrets)[number],
  reference: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const config = readKeyConfig(env)
  const values = {
    DATA_KEY: config.dataKey,
    DATA_KEY_PREVIOUS: config.dataKeyPrevious,
    SESSION_SECRET: config.sessionSecret,
    SESSION_SECRET_PREVIOUS: config.sessionSecretPrevious,
    RECEIPT_KEY: config.receiptKey,
    ACCESS_TOKEN_KEY: config.rotatingKeys.ACCESS_TOKEN_KEY.current,
    WEB_BOT_AUTH_KEY: config.rotatingKeys.WEB_BOT_AUTH_KEY.current,
    PUSH_KEY: config.rotatingKeys.PUSH_KEY.current,
  }
  const value = values[name]
  if (value === null) throw new Error(`Set ${name}, or ${name}_FILE, to the secret.`)
  const wrapped = await withKeys(config, async (keys) =>
    keys.wrap(reference, await keys.openSecret(name, value)),
  )
  process.stdout.write(`${wrapped}\n`)
  return 0
}
