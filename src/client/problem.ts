/** Refusals of the gateway (RFC 9457) as errors. */
import type { Problem } from './operations.ts'

/** A call that the gateway refused, or whose outcome it does not know yet: `code` says which. */
export class BursarProblem extends Error {
  /** Stable code, such as `policy_denied`; each has a page at `/errors/{code}`. */
  readonly code: Problem['code']
  /** HTTP status. */
  readonly status: number
  /** How to resolve it; absent if the gateway gave no advice. */
  readonly hint: string | undefined
  /** Rules of the spend policy that a denied spend breaks. */
  readonly violations: NonNullable<Problem['violations']>
  /** Everything that the gateway said. */
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.name = 'BursarProblem'
    this.code = problem.code
    this.status = problem.status
    this.hint = problem.hint
    this.violations = problem.violations ?? []
    this.problem = problem
  }
}

/** The gateway could not be reached, or something else answered in its place. Nothing is known of the call's effect. */
export class BursarUnreachable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'BursarUnreachable'
  }
}

/** The operation is sold by x402: pay with an x402 client, or read the challenge. */
export class PaymentRequired extends Error {
  readonly challenge: Readonly<Record<string, unknown>>

  constructor(challenge: Readonly<Record<string, unknown>>) {
    super('This operation is sold by x402: it answers a paid request.')
    this.name = 'PaymentRequired'
    this.challenge = challenge
  }
}
