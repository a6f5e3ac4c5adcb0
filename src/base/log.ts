/** The log: JSON lines on standard error, or lines for people where that is a terminal. Nothing that is secret or personal is ever given to it; redaction is the last net. */
import { type DestinationStream, pino, stdTimeFunctions } from 'pino'
import { plainError } from '../failures/loggable-error.ts'

/** What a room needs of a log. */
export interface Log {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** Levels by name, quietest last. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** Where a secret would stand, should one ever be logged by mistake. */
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

/** The process's log. @param level one of {@link logLevels}. @param destination standard error by default. */
export function createLog(
  level: (typeof logLevels)[number],
  destination: DestinationStream = pino.destination(2),
): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: plainError },
      redact: secrets.flatMap((name) => [name, `*.${name}`, `headers["${name}"]`]),
    },
    destination,
  )
}

/** Standard error as people like to read it. Loaded where it is a terminal alone. */
export async function terminalDestination({
  isColoured,
}: {
  isColoured: boolean
}): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty')
  return pretty({ colorize: isColoured, destination: 2, sync: true, translateTime: 'SYS:HH:MM:ss.l' })
}

/** A log that keeps nothing, for tools that print for people. */
export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
