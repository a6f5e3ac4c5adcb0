/**
 * The log: JSON lines on standard error, or formatted lines on a terminal. Secrets and personal data must not be
 * logged; redaction is the last safeguard.
 */
import { type DestinationStream, pino } from 'pino'
import { plainError } from '../failures/loggable-error.ts'
import { systemClock } from './clock.ts'

export interface Log {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** Member names that are redacted if they are logged by mistake. */
const secrets = [
  'authorization',
  'cookie',
  'signature',
  'x-payment',
  'payment-signature',
  'privateKey',
  'sessionToken',
  'key',
]

/** @param destination standard error by default. */
export function createLog(
  level: (typeof logLevels)[number],
  destination: DestinationStream = pino.destination(2),
): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${systemClock().toISOString()}"`,
      serializers: { err: plainError },
      redact: secrets.flatMap((name) => [name, `*.${name}`, `headers["${name}"]`]),
    },
    destination,
  )
}

/** Formatted output for terminals. The library is loaded only when needed. */
export async function terminalDestination({
  isColoured,
}: {
  isColoured: boolean
}): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty')
  return pretty({ colorize: isColoured, destination: 2, sync: true, translateTime: 'SYS:HH:MM:ss.l' })
}

/** Discards all entries, for commands that print to people. */
export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
