/**
 * Errors as they may be written down. Libraries that talk to chains put the whole request into an error's message, its stack
 * and its members: calldata, and with them the signatures that others gave us.
 */

/** Members of errors that say what happened and hold nothing that was sent. */
const told = ['code', 'syscall', 'constraint', 'table', 'severity'] as const

/** Hex longer than a hash: calldata, signed transactions, signatures. */
const longHex = /0x[0-9a-fA-F]{65,}/g

/** An error for a log. @property stack where it was thrown; its causes' messages are in `message`. */
export interface PlainError {
  readonly type: string
  readonly message: string
  readonly stack: string
  readonly [member: string]: string | number
}

/** An error with its causes, without what was sent. Anything else is told as it is. */
export function plainError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const members = told.flatMap((name) => {
    const value: unknown = Reflect.get(error, name)
    return typeof value === 'string' || typeof value === 'number' ? [[name, value]] : []
  })
  return {
    type: error.name,
    message: causesOf(error).map(plainMessage).join(': '),
    stack: framesOf(error),
    ...Object.fromEntries(members),
  } satisfies PlainError
}

/** What an error says, without the request that it is about. viem's own errors keep that apart in `shortMessage`. */
export function plainMessage(error: Error): string {
  const short: unknown = Reflect.get(error, 'shortMessage')
  const details: unknown = Reflect.get(error, 'details')
  const message =
    typeof short !== 'string'
      ? error.message
      : typeof details === 'string' && details !== '' && details !== short
        ? `${short} ${details}`
        : short
  return message.replace(longHex, '0x…')
}

function causesOf(error: Error): Error[] {
  const found = [error]
  for (let { cause } = error; cause instanceof Error && !found.includes(cause); cause = cause.cause)
    found.push(cause)
  return found
}

function framesOf({ stack = '' }: Error): string {
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n')
}
