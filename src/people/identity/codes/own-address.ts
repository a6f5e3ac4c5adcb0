import type { Connection } from '../../../storage/database.ts'
import { type Destination, parseDestination } from './destinations.ts'

/** Finds an e-mail address among those that an account signs in with, which it has proved to read. */
export async function findOwnAddress(
  {
    database,
    settings,
  }: { readonly database: Connection; readonly settings: { readonly dataKey: Uint8Array } },
  { accountId, address }: { accountId: string; address: string },
): Promise<Destination | undefined> {
  const destination = await parseDestination(settings, { channel: 'email', destination: address })
  const own = await database.kysely
    .selectFrom('login_destination')
    .select('destination_hash')
    .where('destination_hash', '=', destination.hash)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return own === undefined ? undefined : destination
}
