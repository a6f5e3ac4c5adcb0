/** `bursar admin grant ACCOUNT`: makes an account of a sandbox an administrator. Production has one, by its configuration. */
import { systemClock } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import { makeSandboxAdmin } from '../identity/accounts.ts'
import { findAccount } from '../identity/store.ts'
import { createJournal } from '../journal/write.ts'
import { dataKeyOf, onAuditDatabase } from './audit-database.ts'

/** Runs an admin command. @returns the exit code. @throws Error whose message is for a person. */
export async function admin(
  [action, accountId, ...rest]: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if (action !== 'grant' || accountId === undefined || rest.length > 0)
    throw new Error('Usage: bursar admin grant ACCOUNT')
  return onAuditDatabase(
    env,
    async (database, config) => {
      if (config.mode === 'production')
        throw new Error(
          'In production the administrator is the account in FOUNDER_ACCOUNT. Set it and restart every gateway.',
        )
      const dataKey = await dataKeyOf(database, config)
      const account = await findAccount(database, accountId)
      if (account === undefined || dataKey === null)
        throw new Error(`There is no account ${accountId}. The page after signing in shows yours.`)
      if (account.guest)
        throw new Error('A guest is never an administrator. Sign in with a passkey or a code first.')
      if (account.role === 'admin') {
        process.stdout.write(`${accountId} is an administrator already.\n`)
        return 0
      }
      const journal = createJournal({ dataKey, newId })
      await database.transaction(async (transaction) => {
        await makeSandboxAdmin(transaction, accountId)
        await journal(transaction, {
          accountId,
          actor: { kind: 'system', id: null },
          action: 'account.role_changed',
          object: { kind: 'account', id: accountId },
          before: { role: account.role },
          after: { role: 'admin' },
          at: systemClock(),
        })
      })
      process.stdout.write(`${accountId} is an administrator from its next request on.\n`)
      return 0
    },
    'While the sandbox runs, POST /sandbox/admin makes your own account an administrator.',
  )
}
