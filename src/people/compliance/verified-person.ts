/** Verified names of account holders, for cards, bank accounts and Travel Rule data. */
import type { Connection } from '../../storage/database.ts'
import { findVerified, type PartialApplicant } from './kyc-store.ts'

/** Reads the verified name of an account's holder; the display name if there is none or it was erased. */
export async function loadHolderName(
  { database, settings }: { database: Connection; settings: { readonly dataKey: Uint8Array } },
  account: { readonly id: string; readonly displayName: string },
): Promise<string> {
  return (await verifiedName({ database, settings }, account.id)) ?? account.displayName
}

/** Reads the verified name of an account's holder; null if there is none or it was erased. */
export async function verifiedName(
  { database, settings }: { database: Connection; settings: { readonly dataKey: Uint8Array } },
  accountId: string,
): Promise<string | null> {
  const person = await verifiedApplicant({ database, settings }, accountId)
  const { firstName = '', lastName = '' } = person ?? {}
  const name = `${firstName} ${lastName}`.trim()
  return name === '' ? null : name
}

/** Reads the verified identity of an account's holder; null if there is none or it was erased. */
export async function verifiedApplicant(
  { database, settings }: { database: Connection; settings: { readonly dataKey: Uint8Array } },
  accountId: string,
): Promise<PartialApplicant['applicant'] | null> {
  const verified = await findVerified({ database, dataKey: settings.dataKey }, accountId)
  return verified?.said?.applicant ?? null
}
