/**
 * Makes errors safe for logs. Chain libraries put the whole request into an error's message, stack and members:
 * calldata, and with it signatures.
 */

/** Error members that are safe to log. */
const safeMembers = ['code', 'syscall', 'constraint', 'table', 'severity'] as const

/** Hex longer than a hash: calldata, signed transactions, signatures. */
const longHex = /0x[0-9a-fA-F]{65,}/g

/** @property stack frames of the error; `message` includes its causes. */
export interface PlainError {
  readonly type: string
  readonly message: string
  readonly stack: string
  readonly [member: string]: string | number
}

/** Converts an error and its causes, without request data. Other values are returned unchanged. */
export function plainError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const members = safeMembers.flatMap((name) => {
    const value: unknown = Reflect.get(error, name)
    return typeof value === 'string' || typeof value === 'number' ? [[name, value]] : []
  })
  return {
    type: error.name,
    message: listCauses(error).map(plainMessage).join(': '),
    stack: extractFrames(error),
    ...Object.fromEntries(members),
  } satisfies PlainError
}

/** The message without request data; viem keeps it in `shortMessage`. */
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

function listCauses(error: Error): Error[] {
  const found = [error]
  for (let { cause } = error; cause instanceof Error && !found.includes(cause); cause = cause.cause)
    found.push(cause)
  return found
}

function extractFrames({ stack = '' }: Error): string {
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n')
}
