/** The values that a database belongs to. A gateway that has others would seal what nobody can verify, or pay from other wallets. */
import { keyedHash } from '../base/seal.ts'
import type { Connection } from '../storage/database.ts'

/** What a gateway is started with. @property chainOwner address of the key that owns the wallets; null where none is configured. */
export interface Deployment {
  readonly dataKey: Uint8Array | null
  readonly chainId: number | null
  readonly chainOwner: string | null
}

const remedies = {
  data_key:
    'DATA_KEY is not the one that this database was made with: its receipts, second factors and personal data need that one. Start with the original DATA_KEY, or name another database.',
  chain_id:
    'the chain is not the one that this database was made with: its wallets and transfers are on that one. Correct CHAIN_RPC_URL, or name another database.',
  chain_owner:
    'CHAIN_OWNER_KEY is not the key that owns the wallets of this database. Start with the original key, or name another database.',
} as const

type Name = keyof typeof remedies

/** What does not match this database, in sentences that say what to do. Reads alone. */
export async function deploymentFaults(database: Connection, deployment: Deployment): Promise<string[]> {
  const values = valuesOf(deployment)
  const rows = await database.kysely.selectFrom('deployment').select(['name', 'value']).execute()
  return rows.flatMap(({ name, value }) =>
    values.has(name) && values.get(name) !== value ? [remedies[name]] : [],
  )
}

/** Makes a database this deployment's at the first start. @throws Error that says what to do where it is another's. */
export async function claimDeployment(database: Connection, deployment: Deployment, at: Date): Promise<void> {
  const values = [...valuesOf(deployment)].map(([name, value]) => ({ name, value, written_at: at }))
  if (values.length > 0)
    await database.kysely
      .insertInto('deployment')
      .values(values)
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  const faults = await deploymentFaults(database, deployment)
  if (faults.length > 0) throw new Error(faults.join(' '))
}

function valuesOf({ dataKey, chainId, chainOwner }: Deployment): ReadonlyMap<Name, string> {
  const values: Readonly<Record<Name, string | null>> = {
    data_key: dataKey === null ? null : keyedHash(dataKey, 'deployment', 'data key'),
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
