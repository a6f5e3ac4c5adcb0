/** Header fields as they came: pairs in one list, with repeats and in their case. */

/** Fields of one connection, and ours between a program and this proxy. @see https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1 */
const HOP_BY_HOP =
  /^(connection|proxy-connection|keep-alive|proxy-authenticate|proxy-authentication-info|proxy-authorization|te|trailer|transfer-encoding|upgrade|http2-settings|expect|bursar-(idempotency-key|purchase|charged|problem))$/i

/** Fields that say where a message ends and for whom it is: `Connection` must not name them away, or the rest is a message more. */
const NEVER_NAMED = ['content-length', 'host']

/** Removes the fields of one connection, also those that `Connection` names. @param keep names in lower case. */
export function dropHopByHop(fields: readonly string[], keep: readonly string[] = []): string[] {
  const named = new Set(
    readPairs(fields).flatMap(([name, value]) =>
      /^connection$/i.test(name) ? value.split(',').map((each) => each.trim().toLowerCase()) : [],
    ),
  )
  return readPairs(fields).flatMap(([name, value]) => {
    const lower = name.toLowerCase()
    const isNamed = named.has(lower) && !NEVER_NAMED.includes(lower)
    return keep.includes(lower) || !(HOP_BY_HOP.test(name) || isNamed) ? [name, value] : []
  })
}

export function readPairs(fields: readonly string[]): readonly (readonly [name: string, value: string])[] {
  const pairs: (readonly [string, string])[] = []
  for (let at = 0; at + 1 < fields.length; at += 2) pairs.push([fields[at] ?? '', fields[at + 1] ?? ''])
  return pairs
}
