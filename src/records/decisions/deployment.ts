/**
 * Binds a database to its deployment. A gateway with other values would sign unverifiable receipts, or pay from other
 * wallets.
 */
import type { Connection } from '../../storage/database.ts'
import { deploymentMark } from './data-key.ts'

/** @property chainOwner address of the key that owns the wallets; null if none is configured. */
export interface Deployment {
  readonly dataKey: Uint8Array | null
  /** Of the default chain. Further chains may be added and left out. */
  readonly chainId: number | null
  readonly chainOwner: string | null
}

const remedies = {
  data_key:
    'DATA_KEY differs from the key that this database was created with, which its receipts, second factors and personal data require. Use the original DATA_KEY, or configure another database.',
  chain_id:
    'The default chain, the first of CHAINS, differs from the one that this database was created with, on which are its cards, purchases and bank deposits. Name the original first, or configure another database.',
  chain_owner:
    'CHAIN_OWNER_KEY does not own the wallets of this database. Use the original key, or configure another database.',
} as const

type Name = keyof typeof remedies

/** Returns a sentence with a remedy for each mismatch. Read-only. */
export async function deploymentFaults(database: Connection, deployment: Deployment): Promise<string[]> {
  const values = listValues(deployment)
  const rows = await database.kysely.selectFrom('deployment').select(['name', 'value']).execute()
  return rows.flatMap(({ name, value }) =>
    name !== 'root_key' && values.has(name) && values.get(name) !== value ? [remedies[name]] : [],
  )
}

/** Binds a new database to this deployment. @throws Error with a remedy when it belongs to another. */
export async function claimDeployment(database: Connection, deployment: Deployment, at: Date): Promise<void> {
  const values = [...listValues(deployment)].map(([name, value]) => ({ name, value, written_at: at }))
  if (values.length > 0)
    await database.kysely
      .insertInto('deployment')
      .values(values)
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  const faults = await deploymentFaults(database, deployment)
  if (faults.length > 0) throw new Error(faults.join(' '))
}

function listValues({ dataKey, chainId, chainOwner }: Deployment): ReadonlyMap<Name, string> {
  const values: Readonly<Record<Name, string | null>> = {
    data_key: dataKey === null ? null : deploymentMark(dataKey),
    chain_id: chainId === null ? null : String(chainId),
    chain_owner: chainOwner?.toLowerCase() ?? null,
  }
  const names = ['data_key', 'chain_id', 'chain_owner'] as const
  return new Map(
    names.flatMap((name): [Name, string][] => {
      const value = values[name]
      return value === null ? [] : [[name, value]]
    }),
  )
}
