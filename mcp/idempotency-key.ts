/** The argument that names a call: over REST the header Idempotency-Key. What spends needs it, what writes may have it. */
import { Failure } from '../src/failures/failure.ts'
import type { Tool } from '../src/kernel/tool.ts'

/** The schema of the argument; null where the tool has none. */
export function idempotencyKeySchema({ effect }: Pick<Tool, 'effect'>): object | null {
  if (effect === 'read') return null
  const description =
    effect === 'spend'
      ? 'Names this payment: a new key for a new payment, the same key when you repeat a call. Never pays twice.'
      : 'Names this call: the same key when you repeat it, which answers as before and does nothing twice. Kept for 24 hours.'
  return { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$', description }
}

/** Takes the argument from the others. @throws Failure `invalid_request`. */
export function splitArguments(
  { effect }: Pick<Tool, 'effect'>,
  given: Readonly<Record<string, unknown>>,
): { input: Record<string, unknown>; idempotencyKey: string | null } {
  if (effect === 'read') return { input: given, idempotencyKey: null }
  const { idempotency_key: key, ...input } = given
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return { input, idempotencyKey: key }
  if (key === undefined && effect === 'write') return { input, idempotencyKey: null }
  const message = key === undefined ? 'is required' : 'must be 1 to 255 visible ASCII characters'
  throw new Failure('invalid_request', `idempotency_key: ${message}`, {
    issues: [{ path: 'idempotency_key', message }],
    hint: 'Give each new call a new idempotency_key, and repeat a call with the same one.',
  })
}
