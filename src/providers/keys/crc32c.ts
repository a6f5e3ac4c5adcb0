/** Checksum by the polynomial of Castagnoli, which finds accidents only. @see https://www.rfc-editor.org/rfc/rfc3720#appendix-B.4 */
const REFLECTED = 0x82f63b78

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte
  for (let bit = 0; bit < 8; bit += 1) sum = (sum & 1) === 1 ? (sum >>> 1) ^ REFLECTED : sum >>> 1
  return sum
})

/** @returns 32 bits. */
export function computeCrc32c(data: Uint8Array): number {
  let sum = 0xffffffff
  for (const byte of data) sum = (sum >>> 8) ^ (table[(sum ^ byte) & 0xff] ?? 0)
  return (sum ^ 0xffffffff) >>> 0
}
