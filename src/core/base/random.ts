/**
 * Cryptographically secure randomness, as a port: a simulator installs its own through `ports.ts`. The only file that
 * generates randomness.
 */
import { generateKeyPair, generateKeyPairSync, type KeyObject, randomBytes, randomInt } from 'node:crypto'
import { promisify } from 'node:util'

export interface Random {
  /** @returns bytes that the caller owns and may change. */
  bytes(length: number): Buffer
  /** A whole number from 0 to `limit - 1`, each with the same probability. */
  below(limit: number): number
  /** A new private key. */
  ed25519Key(): KeyObject
  /** A new private key, generated off the main thread: it takes a third of a second. @param bits of the modulus. */
  rsaKey(bits: number): Promise<KeyObject>
}

/**
 * Random bytes are fetched in bulk, because a system call costs the same for many bytes as for few. Used bytes are
 * erased.
 */
let pool = Buffer.alloc(0)

function takeBytes(length: number): Buffer {
  if (length > pool.length) pool = randomBytes(Math.max(4_096, length))
  const bytes = Buffer.from(pool.subarray(0, length))
  pool.fill(0, 0, length)
  pool = pool.subarray(length)
  return bytes
}

export const systemRandom: Random = {
  bytes: takeBytes,
  below: (limit) => randomInt(limit),
  ed25519Key: () => generateKeyPairSync('ed25519').privateKey,
  rsaKey: async (bits) => (await promisify(generateKeyPair)('rsa', { modulusLength: bits })).privateKey,
}

let installed = systemRandom

/** The installed randomness, by default the system's. A port that wraps another wraps {@link systemRandom}. */
export const random: Random = {
  bytes: (length) => installed.bytes(length),
  below: (limit) => installed.below(limit),
  ed25519Key: () => installed.ed25519Key(),
  rsaKey: (bits) => installed.rsaKey(bits),
}

/** @returns the randomness that was installed before. */
export function installRandom(next: Random): Random {
  const before = installed
  installed = next
  return before
}
