/**
 * Binds a database to its deployment. A gateway with other values would sign unverifiable receipts, or pay from other
 * wallets.
 */
import type { GatewayKeys } from '../../providers/chain/port.ts'
import { type OwnerRotation, readRotations } from '../../rails/wallets/owners/owner-store.ts'
import type { Connection } from '../../storage/database.ts'
import { deploymentMark } from './data-key.ts'

/** @property chainOwners addresses of the keys that own the wallets; null if none is configured. */
export interface Deployment {
  readonly dataKey: Uint8Array | null
  /** Of the default chain. Further chains may be added and left out. */
  readonly chainId: number | null
  readonly chainOwners: GatewayKeys | null
}

const remedies = {
  data_key:
    'DATA_KEY differs from the key that this database was created with, which its receipts, second factors and personal data require. Use the original DATA_KEY, or configure another database.',
  chain_id:
    'The default chain, the first of CHAINS, differs from the one that this database was created with, on which are its cards, purchases and bank deposits. Name the original first, or configure another database.',
} as const

const OWNER_REMEDY =
  'Use the original key, or configure another database; to replace the key, set CHAIN_OWNER_KEY_PREVIOUS to the original (docs/keys.md).'

type Name = keyof typeof remedies

/** Returns a sentence with a remedy for each mismatch. Read-only. */
export async function deploymentFaults(database: Connection, deployment: Deployment): Promise<string[]> {
  const values = listValues(deployment)
  const rows = await database.kysely
    .selectFrom('deployment')
    .select(['name', 'value'])
    .where('name', 'in', ['data_key', 'chain_id'])
    .execute()
  const faults = rows.flatMap(({ name, value }) =>
    isBound(name) && values.has(name) && values.get(name) !== value ? [remedies[name]] : [],
  )
  const owners = await judgeOwners(database, deployment.chainOwners)
  return owners.fault === undefined ? faults : [...faults, owners.fault]
}

/**
 * Binds a new database to this deployment, and begins to replace the key of owners where the configuration says so.
 * @throws Error with a remedy when it belongs to another.
 */
export async function claimDeployment(database: Connection, deployment: Deployment, at: Date): Promise<void> {
  const owner = deployment.chainOwners?.current
  const values = [
    ...listValues(deployment),
    ...(owner === undefined ? [] : ([['chain_owner', owner]] as const)),
  ].map(([name, value]) => ({ name, value, written_at: at }))
  if (values.length > 0)
    await database.kysely
      .insertInto('deployment')
      .values(values)
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  const { begins } = await judgeOwners(database, deployment.chainOwners)
  if (begins !== undefined && (await readFaults()).length === 0) await beginRotation(database, begins, at)
  const faults = await readFaults()
  if (faults.length > 0) throw new Error(faults.join(' '))

  function readFaults() {
    return deploymentFaults(database, deployment)
  }
}

/** @property begins a replacement that this configuration begins. */
interface OwnersVerdict {
  readonly fault?: string
  readonly begins?: Pick<OwnerRotation, 'from' | 'to'>
}

/**
 * Compares the keys of owners with those of the database. A key that was replaced never owns again: a gateway that is started with an
 * old configuration would turn the replacement back.
 */
async function judgeOwners(database: Connection, keys: GatewayKeys | null): Promise<OwnersVerdict> {
  if (keys === null) return {}
  const [row, rotations] = await Promise.all([
    database.kysely
      .selectFrom('deployment')
      .select('value')
      .where('name', '=', 'chain_owner')
      .executeTakeFirst(),
    readRotations(database),
  ])
  if (row === undefined) return {}
  const { current, previous } = keys
  const owner = row.value
  const open = rotations.find(({ isFinished }) => !isFinished)
  const replacedBy = rotations.find(({ from, isFinished }) => from === current && isFinished)?.to
  if (replacedBy !== undefined)
    return {
      fault: `CHAIN_OWNER_KEY (${current}) was replaced by ${owner} and cannot own wallets again. Use that key.`,
    }
  if (current === owner) {
    if (open !== undefined && previous !== open.to)
      return {
        fault: `CHAIN_OWNER_KEY (${current}) is being replaced by ${open.to}. Set CHAIN_OWNER_KEY to that key, and CHAIN_OWNER_KEY_PREVIOUS to this one.`,
      }
    return {}
  }
  if (previous === null && open?.to === current)
    return {
      fault: `CHAIN_OWNER_KEY_PREVIOUS (${owner}) is needed until no wallet has that key; "bursar doctor" tells how many do.`,
    }
  if (previous === null)
    return { fault: `CHAIN_OWNER_KEY does not own the wallets of this database. ${OWNER_REMEDY}` }
  if (open !== undefined && open.to !== current)
    return {
      fault: `CHAIN_OWNER_KEY (${owner}) is already being replaced, by ${open.to}. Use that key until no wallet is left with the former one ("bursar doctor" tells), then replace it.`,
    }
  if (previous !== owner)
    return {
      fault: `CHAIN_OWNER_KEY_PREVIOUS (${previous}) does not own the wallets of this database, and CHAIN_OWNER_KEY is another key than their owner, ${owner}. ${OWNER_REMEDY}`,
    }
  if (open !== undefined) return {}
  return { begins: { from: previous, to: current } }
}

async function beginRotation(
  database: Connection,
  { from, to }: Pick<OwnerRotation, 'from' | 'to'>,
  at: Date,
): Promise<void> {
  await database.kysely
    .insertInto('deployment')
    .values({ name: 'chain_first_owner', value: from, written_at: at })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  // Of two gateways that begin at once, the second finds out that it was too late.
  await database.kysely
    .insertInto('owner_rotation')
    .values({ to_owner: to, from_owner: from, begun_at: at })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

function isBound(name: string): name is Name {
  return name in remedies
}

function listValues({ dataKey, chainId }: Deployment): ReadonlyMap<Name, string> {
  const values: Readonly<Record<Name, string | null>> = {
    data_key: dataKey === null ? null : deploymentMark(dataKey),
    chain_id: chainId === null ? null : String(chainId),
  }
  const names = ['data_key', 'chain_id'] as const
  return new Map(
    names.flatMap((name): [Name, string][] => {
      const value = values[name]
      return value === null ? [] : [[name, value]]
    }),
  )
}
