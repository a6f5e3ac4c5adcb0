/**
 * The idempotency_key argument, equivalent to the REST header Idempotency-Key. Required for spends, optional for
 * writes.
 */
import { Failure, type FailureMembers } from '../src/core/failures/failure.ts'
import type { Tool } from '../src/kernel/tool.ts'

/** Schema of the argument, 1 to 255 visible ASCII characters; null for reads. */
export function idempotencyKeySchema({ effect }: Pick<Tool, 'effect'>): object | null {
  if (effect === 'read') return null
  return effect === 'spend'
    ? { type: 'string', description: 'New for each payment, the same to repeat a call.' }
    : { type: 'string' }
}

/**
 * Separates the idempotency key from the other arguments. @throws Failure `invalid_request` with the issues of the key and of
 * the other arguments, so that a caller corrects all in one go.
 */
export function splitArguments(
  { effect, decode }: Pick<Tool, 'effect' | 'decode'>,
  given: Readonly<Record<string, unknown>>,
): { input: Record<string, unknown>; idempotencyKey: string | null } {
  if (effect === 'read') return { input: given, idempotencyKey: null }
  const { idempotency_key: key, ...input } = given
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return { input, idempotencyKey: key }
  if (key === undefined && effect === 'write') return { input, idempotencyKey: null }
  const message = key === undefined ? 'is required' : 'must be 1 to 255 visible ASCII characters'
  const others = findIssues(decode, input)
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`
  throw new Failure('invalid_request', `idempotency_key: ${message}${more}`, {
    issues: [{ path: 'idempotency_key', message }, ...others],
    hint: 'Use a new idempotency_key for each new call, and the same one to repeat a call.',
  })
}

function findIssues(decode: Tool['decode'], input: unknown): NonNullable<FailureMembers['issues']> {
  try {
    decode(input)
    return []
  } catch (error) {
    if (error instanceof Failure && error.code === 'invalid_request') return error.members.issues ?? []
    throw error
  }
}
