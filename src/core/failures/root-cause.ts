import { plainMessage } from './loggable-error.ts'

/** User-facing message of an error's innermost cause, or its code. */
export function rootCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return rootCause(error.cause)
  // Node leaves the message empty when several addresses refused a connection.
  if (error.message === '' && 'code' in error) return String(error.code)
  return error.message === '' ? error.name : plainMessage(error)
}
