/**
 * The idempotency_key argument, equivalent to the REST header Idempotency-Key. Required for spends, optional for
 * writes.
 */
import { Failure } from '../src/failures/failure.ts'
import type { Tool } from '../src/kernel/tool.ts'

/** Schema of the argument; null for reads. */
export function idempotencyKeySchema({ effect }: Pick<Tool, 'effect'>): object | null {
  if (effect === 'read') return null
  const description =
    effect === 'spend'
      ? 'Idempotency key of this payment: use a new key for a new payment, and the same key to repeat a call. A key never pays twice.'
      : 'Idempotency key of this call: repeating a call with the same key returns the first response without a second effect. Kept for 24 hours.'
  return { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$', description }
}

/** Separates the idempotency key from the other arguments. @throws Failure `invalid_request`. */
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
    hint: 'Use a new idempotency_key for each new call, and the same one to repeat a call.',
  })
}
