/**
 * The public keys of receipts. A key is published before it signs, and stays published after another has replaced it, so that gateways
 * can be restarted with a new key one by one, and old receipts verify for ever.
 */
import { timingSafeEqual } from 'node:crypto'
import { keyedHash } from '../../core/base/seal.ts'
import type { Connection } from '../../storage/database.ts'
import { buildKeySet, deriveSigningKey, type KeySet, type SigningKey } from './signing-key.ts'

/** Publishes the key of a gateway that starts. A database with receipts from before such records has those of its derived key. */
export async function publishReceiptKey(
  { kysely }: Connection,
  { dataKey, receiptKey }: { dataKey: Uint8Array; receiptKey: SigningKey },
  at: Date,
): Promise<void> {
  const [known, sealed] = await Promise.all([
    kysely.selectFrom('receipt_key').select('kid').limit(1).execute(),
    kysely.selectFrom('decision_seal').select('sequence').limit(1).execute(),
  ])
  const isFirstRecord = known.length === 0 && sealed.length > 0
  const keys = [...(isFirstRecord ? [await deriveSigningKey(dataKey)] : []), receiptKey]
  for (const { keyId: kid, publicKey } of keys)
    await kysely
      .insertInto('receipt_key')
      .values({ kid, public_key: publicKey, mac: computeMac(dataKey, { kid, publicKey }), published_at: at })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
}

/**
 * Reads every key that receipts may be signed with, the newest first. Rows that no gateway of this data key has written are left out:
 * who can only write to the database cannot publish a key.
 */
export async function readKeySet({ kysely }: Connection, dataKey: Uint8Array): Promise<KeySet> {
  const rows = await kysely
    .selectFrom('receipt_key')
    .select(['kid', 'public_key', 'mac'])
    .orderBy('published_at', 'desc')
    .orderBy('kid')
    .execute()
  const keys = rows
    .map(({ kid, public_key: publicKey, mac }) => ({ kid, publicKey, mac }))
    .filter(({ mac, ...key }) => isEqual(mac, computeMac(dataKey, key)))
  return keys.length === 0 ? (await deriveSigningKey(dataKey)).keySet : buildKeySet(keys)
}

function computeMac(dataKey: Uint8Array, { kid, publicKey }: { kid: string; publicKey: string }): string {
  return keyedHash(dataKey, 'receipt key', `${kid} ${publicKey}`)
}

function isEqual(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}
