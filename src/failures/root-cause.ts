import { plainMessage } from './loggable-error.ts'

/** What lies at the bottom of an error, for a person to read: the message of its first cause, or that one's code. */
export function rootCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return rootCause(error.cause)
  // Node tells of a connection that several addresses refused without a message.
  if (error.message === '' && 'code' in error) return String(error.code)
  return error.message === '' ? error.name : plainMessage(error)
}
