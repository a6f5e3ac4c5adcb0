/**
 * The data key of a database. DATA_KEY seals; the root, which it was created with, makes hashes and derived keys. After a
 * rotation the root lies in the database, sealed under DATA_KEY.
 */
import { type DataKey, keyedHash, seal, unseal } from '../../core/base/seal.ts'
import type { KeyConfig } from '../../core/config/keys.ts'
import type { Keys } from '../../providers/keys/port.ts'
import type { Connection } from '../../storage/database.ts'

export interface ConfiguredKeys {
  /** Seals, and opens what it sealed. */
  readonly current: string
  /** Opens too; null outside of a rotation. */
  readonly previous: string | null
}

/** Opens DATA_KEY and DATA_KEY_PREVIOUS, wherever they are; null for one that is not configured. */
export async function openDataKeys(
  keys: Pick<Keys, 'openSecret'>,
  { dataKey, dataKeyPrevious }: Pick<KeyConfig, 'dataKey' | 'dataKeyPrevious'>,
): Promise<{ readonly current: string | null; readonly previous: string | null }> {
  const [current, previous] = await Promise.all([
    dataKey === null ? null : keys.openSecret('DATA_KEY', dataKey),
    dataKeyPrevious === null ? null : keys.openSecret('DATA_KEY_PREVIOUS', dataKeyPrevious),
  ])
  return { current, previous }
}

const ROOT = { purpose: 'root key', owner: 'deployment' }
const ROW = 'root_key'

/**
 * Finds the root among the keys, or opens the stored one. Without either the current key is the root, as in a new
 * database; {@link claimDeployment} then compares it. @throws Error when the keys do not open the stored root.
 */
export async function openDataKey(
  { kysely }: Connection,
  { current, previous }: ConfiguredKeys,
): Promise<DataKey> {
  const keys = [current, ...(previous === null ? [] : [previous])].map((text) => Buffer.from(text))
  const [first = Buffer.from(current)] = keys
  const rows = await kysely.selectFrom('deployment').select(['name', 'value']).execute()
  const stored = new Map<string, string>(rows.map(({ name, value }) => [name, value]))
  const sealed = stored.get(ROW)
  const root =
    sealed === undefined
      ? (keys.find((key) => deploymentMark(key) === stored.get('data_key')) ?? first)
      : openRoot(Buffer.from(sealed, 'base64url'), keys)
  const isPlain = keys.length === 1 && first.equals(root)
  return isPlain ? root : Object.assign(root, { sealing: keys })
}

/** Identifies a root without revealing it. */
export function deploymentMark(root: Uint8Array): string {
  return keyedHash(root, 'deployment', 'data key')
}

/** Stores the root under the first sealing key: from now on no gateway starts with a key that came before. */
export async function storeRoot({ kysely }: Connection, dataKey: DataKey, at: Date): Promise<void> {
  const text = Buffer.from(dataKey).toString('base64')
  const value = Buffer.from(seal(dataKey, ROOT, text)).toString('base64url')
  await kysely
    .insertInto('deployment')
    .values({ name: ROW, value, written_at: at })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value, written_at: at }))
    .execute()
}

function openRoot(sealed: Uint8Array, keys: readonly Uint8Array[]): Buffer<ArrayBuffer> {
  try {
    return Buffer.from(unseal(Object.assign(Buffer.alloc(0), { sealing: keys }), ROOT, sealed), 'base64')
  } catch (cause) {
    throw new Error(
      'DATA_KEY is not the key that this database was rotated to. Use that one; during a rotation, DATA_KEY_PREVIOUS is the one before.',
      { cause },
    )
  }
}
