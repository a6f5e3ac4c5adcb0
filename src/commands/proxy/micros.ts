/** Amounts in millionths of a US dollar, the smallest unit of USDC. */

/** Millionths as a decimal without an end of zeros. */
export function formatMicros(micros: bigint): string {
  const digits = micros.toString().padStart(7, '0')
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '')
}

/** @returns null for text that is no amount of at most six decimals. */
export function parseMicros(text: string): bigint | null {
  const [, whole = '', part = ''] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text) ?? []
  return whole === '' ? null : BigInt(`${whole}${part.padEnd(6, '0')}`)
}
