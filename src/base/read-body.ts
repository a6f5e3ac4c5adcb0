/** Bodies of others' answers, of which no more is read than anybody could have use for. */

/** No provider's answer comes near. */
const LARGEST_BYTES = 1024 * 1024

/** The text of an answer. @throws Error where it is over `largest` bytes; the rest is not read. */
export async function textOf(response: Response, largest = LARGEST_BYTES): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (bytes > largest) throw new Error(`the answer is over ${largest} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}
