/** Options of the proxy that `bursar run` shares. */
import { readFileSync } from 'node:fs'
import { parseMicros } from './micros.ts'

const DEFAULT_BUDGET = '1.00'
const DEFAULT_MAX_PRICE = '0.10'

/** What one purchase may cost, and all of them. */
export interface ProxyLimits {
  readonly maxMicros: bigint
  readonly budgetMicros: bigint
}

/** @throws Error for what is no amount. */
export function readLimits(values: {
  readonly budget?: string | undefined
  readonly 'max-price'?: string | undefined
}): ProxyLimits {
  return {
    maxMicros: parseLimit('--max-price', values['max-price'] ?? DEFAULT_MAX_PRICE),
    budgetMicros: parseLimit('--budget', values.budget ?? DEFAULT_BUDGET),
  }
}

function parseLimit(option: string, text: string): bigint {
  const micros = parseMicros(text)
  if (micros === null || micros === 0n)
    throw new Error(`${option} ${text}: must be an amount in USD, such as 0.10.`)
  return micros
}

/** @throws Error for a file that holds no certificate. */
export function readRoots(path: string | undefined): string {
  if (path === undefined) return ''
  const text = readFileSync(path, 'utf8')
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new Error(`--ca ${path}: holds no certificate in PEM.`)
}
