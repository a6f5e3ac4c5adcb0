/** Long request bodies: few at a time, because each stays in memory until its request was answered. */
import { Failure } from '../../core/failures/failure.ts'
import { MAX_BODY_BYTES } from './problem.ts'
import type { HttpContext } from './request.ts'

/** In a process. Each may have 6 MiB. */
const MAX_LONG_BODIES = 16

/** True unless the request says that its body is short. */
export function mayBeLong(c: HttpContext): boolean {
  const length = c.req.header('content-length')
  return length === undefined || Number(length) > MAX_BODY_BYTES
}

export function createLongBodies() {
  let taken = 0
  return {
    /** @returns a function that ends the request's turn. @throws Failure `provider_unavailable` when too many have theirs. */
    take: (): (() => void) => {
      if (taken >= MAX_LONG_BODIES)
        throw new Failure('provider_unavailable', 'Too many long bodies are being received at once.', {
          retryAfter: 2,
        })
      taken += 1
      return () => {
        taken -= 1
      }
    },
  }
}
