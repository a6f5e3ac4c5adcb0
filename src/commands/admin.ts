/** `bursar admin grant|revoke|list`: the administrators of the configured database. */
import { systemClock } from '../core/base/clock.ts'
import { newId } from '../core/base/ids.ts'
import type { Account } from '../core/base/principal.ts'
import type { Config } from '../core/config/read-config.ts'
import { findNamedFounder, nameFounder, setSandboxRole } from '../people/identity/accounts.ts'
import { parseDestination } from '../people/identity/codes/destinations.ts'
import { findOwner } from '../people/identity/codes/login-destinations.ts'
import { findAccount } from '../people/identity/store.ts'
import { createJournal } from '../records/journal/write.ts'
import type { Connection, Database } from '../storage/database.ts'
import { onAuditDatabase, readDataKey } from './audit-database.ts'

interface AdminContext {
  readonly database: Database
  readonly mode: Config['mode']
  readonly dataKey: Uint8Array
}

type Person = { readonly accountId: string } | { readonly email: string }

/** Runs an admin command. @returns the exit code. @throws Error whose message is for a person. */
export async function admin(
  [action = '', accountId, ...rest]: readonly string[],
  { email }: { readonly email?: string | undefined },
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const person = accountId !== undefined ? { accountId } : email !== undefined ? { email } : null
  const isNamed = (accountId === undefined) !== (email === undefined)
  const isList = action === 'list' && person === null
  const isChange = (action === 'grant' || action === 'revoke') && isNamed
  if (rest.length > 0 || (!isList && !isChange))
    throw new Error('Usage: bursar admin grant|revoke ACCOUNT, grant|revoke --email ADDRESS, or list')
  return onAuditDatabase(
    env,
    async (database, config) => {
      const dataKey = await readDataKey(database, config)
      if (dataKey === null) throw new Error('This database is new: start the gateway and sign in once.')
      const context = { database, mode: config.mode, dataKey }
      if (person === null) process.stdout.write(await describeAdmins(context, config.founderAccount))
      else {
        if (config.mode === 'production' && config.founderAccount !== null)
          throw new Error(
            `FOUNDER_ACCOUNT names the administrator, ${config.founderAccount}. Remove that variable and restart every gateway to use this command, or change it.`,
          )
        const account = await findPerson(context, person)
        process.stdout.write(await (action === 'grant' ? grant : revoke)(context, account))
      }
      return 0
    },
    'While the sandbox runs, POST /sandbox/admin makes your own account an administrator.',
  )
}

async function findPerson({ database, dataKey }: AdminContext, person: Person): Promise<Account> {
  if ('accountId' in person) {
    const account = await findAccount(database, person.accountId)
    if (account !== undefined) return account
    throw new Error(`There is no account ${person.accountId}. The page after signing in shows yours.`)
  }
  const { hash } = await parseDestination({ dataKey }, { channel: 'email', destination: person.email })
  const account = await findOwner(database, hash)
  if (account !== undefined) return account
  throw new Error(
    `Nobody signs in with ${person.email} here. Sign in once with a code to this address, then repeat this command.`,
  )
}

async function grant(context: AdminContext, account: Account): Promise<string> {
  const { id } = account
  if (account.guest)
    throw new Error('A guest is never an administrator. Sign in with a passkey or a code first.')
  if (await isAdmin(context, account)) return `${id} is an administrator already.\n`
  const { database, mode, dataKey } = context
  await database.transaction(async (transaction) => {
    if (mode === 'sandbox') await setSandboxRole(transaction, { accountId: id, role: 'admin' })
    else {
      const founder = await findNamedFounder(transaction, { dataKey })
      if (founder !== undefined)
        throw new Error(
          `${founder} is the administrator, and production has one. Run "bursar admin revoke ${founder}" first.`,
        )
      await nameFounder(transaction, { dataKey }, id)
    }
    await record(context, transaction, { accountId: id, before: 'user', after: 'admin' })
  })
  return `${id} is an administrator from its next request on.\n`
}

async function revoke(context: AdminContext, account: Account): Promise<string> {
  const { id } = account
  if (!(await isAdmin(context, account))) return `${id} is no administrator.\n`
  const { database, mode, dataKey } = context
  await database.transaction(async (transaction) => {
    if (mode === 'sandbox') await setSandboxRole(transaction, { accountId: id, role: 'user' })
    else await nameFounder(transaction, { dataKey }, null)
    await record(context, transaction, { accountId: id, before: 'admin', after: 'user' })
  })
  return `${id} is no administrator from its next request on.\n`
}

async function isAdmin({ database, mode, dataKey }: AdminContext, { id, role }: Account): Promise<boolean> {
  return mode === 'sandbox' ? role === 'admin' : (await findNamedFounder(database, { dataKey })) === id
}

async function describeAdmins(
  { database, mode, dataKey }: AdminContext,
  configured: string | null,
): Promise<string> {
  if (mode === 'production') {
    const founder = configured ?? (await findNamedFounder(database, { dataKey }))
    if (founder === undefined) return 'There is no administrator. Run "bursar admin grant --email ADDRESS".\n'
    return `${founder}  ${configured === null ? 'bursar admin grant' : 'FOUNDER_ACCOUNT'}\n`
  }
  const rows = await database.kysely
    .selectFrom('account')
    .select('id')
    .where('role', '=', 'admin')
    .where('guest', '=', false)
    .orderBy('created_at')
    .execute()
  const ids = [...new Set([...(configured === null ? [] : [configured]), ...rows.map(({ id }) => id)])]
  return ids.length === 0 ? 'There is no administrator.\n' : `${ids.join('\n')}\n`
}

async function record(
  { dataKey }: AdminContext,
  transaction: Connection,
  change: { accountId: string; before: Account['role']; after: Account['role'] },
): Promise<void> {
  await createJournal({ dataKey, newId })(transaction, {
    accountId: change.accountId,
    actor: { kind: 'system', id: null },
    action: 'account.role_changed',
    object: { kind: 'account', id: change.accountId },
    before: { role: change.before },
    after: { role: change.after },
    at: systemClock(),
  })
}
