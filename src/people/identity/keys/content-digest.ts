/** Computes and verifies body digests. @see https://www.rfc-editor.org/rfc/rfc9530 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { isInnerList, parseDictionary, serializeDictionary } from 'structured-headers'

const hashes = new Map([
  ['sha-256', 'sha256'],
  ['sha-512', 'sha512'],
])

export function contentDigest(body: Uint8Array): string {
  return serializeDictionary({
    'sha-256': [toArrayBuffer(createHash('sha256').update(body).digest()), new Map()],
  })
}

function toArrayBuffer(buffer: Uint8Array): ArrayBuffer {
  return new Uint8Array(buffer).buffer
}

/** True if the header has at least one supported digest and all supported digests match the body. */
export function fitsDigest(header: string, body: Uint8Array): boolean {
  const known = [...readDigests(header)].filter(([name]) => hashes.has(name))
  return (
    known.length > 0 &&
    known.every(([name, digest]) => {
      const actual = createHash(hashes.get(name) ?? 'sha256')
        .update(body)
        .digest()
      return digest.length === actual.length && timingSafeEqual(digest, actual)
    })
  )
}

function readDigests(header: string): Map<string, Uint8Array> {
  try {
    const members = [...parseDictionary(header)]
    return new Map(
      members.flatMap(([name, member]) =>
        !isInnerList(member) && member[0] instanceof ArrayBuffer ? [[name, new Uint8Array(member[0])]] : [],
      ),
    )
  } catch {
    return new Map()
  }
}
