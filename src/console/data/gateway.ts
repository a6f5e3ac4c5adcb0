/**
 * The gateway as the console sees it: the published client with the session's cookie. The console can do nothing that
 * the API cannot.
 */
import { signal } from '@preact/signals'
import { Bursar } from '../../client/bursar.ts'
import { BursarProblem, BursarUnreachable } from '../../client/problem.ts'
import { fetchAndSetClock } from './clock.ts'

export const bursar = new Bursar({ url: location.origin, fetch: fetchAndSetClock })

/** A privileged call that waits for a second factor. */
export interface PendingProof {
  readonly detail: string
  /** Continues the call after the proof, or ends it. */
  readonly settle: (isProven: boolean) => void
}

/** The call that waits for the person's second factor; null if none does. */
export const pendingProof = signal<PendingProof | null>(null)

/** A call that the person gave up. It is no failure, and nothing is shown. */
export class GivenUp extends Error {}

let asking: Promise<boolean> | null = null

/** Asks once for all calls that wait at the same time: one answer is theirs too. */
function askForProof(detail: string): Promise<boolean> {
  asking ??= new Promise<boolean>((settle) => {
    pendingProof.value = { detail, settle }
  }).finally(() => {
    asking = null
    pendingProof.value = null
  })
  return asking
}

/**
 * Makes a privileged call. When it requires a second factor, asks the person for it and repeats the call.
 * @throws GivenUp if the person closes the dialog
 */
export async function withProof<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!isProblem(error, 'step_up_required')) throw error
      if (!(await askForProof(error.message))) throw new GivenUp('The person closed the dialog.')
    }
  }
}

export function isProblem(error: unknown, code: string): error is BursarProblem {
  return error instanceof BursarProblem && error.code === code
}

/** Says a failure in a sentence for people. Hints that name routes or members are for programs and left out. */
export function sentenceOf(error: unknown): string {
  if (error instanceof BursarUnreachable)
    return 'Bursar did not answer, so it is not known whether this was done. Press again in a moment: nothing is paid twice.'
  if (!(error instanceof BursarProblem))
    return browserSentences[nameOf(error)] ?? 'Something went wrong here.'
  if (error.code === 'mfa_enrollment_required')
    return 'This needs a second factor. Add one under Security first.'
  const { hint } = error
  const isForPrograms =
    hint === undefined || /\b(GET|POST|PUT|PATCH|DELETE) \/|Authorization|Idempotency-Key|"|`/.test(hint)
  return [error.message, isForPrograms ? '' : hint].filter((words) => words !== '').join(' ')
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : ''
}

/** Errors of the browser's own dialogs, by name. */
const browserSentences: Readonly<Record<string, string>> = {
  NotAllowedError: 'No passkey was used: the request was cancelled or timed out.',
  InvalidStateError: 'This device already has a passkey for this account.',
  AbortError: 'The request was cancelled.',
  SecurityError: 'Passkeys do not work at this address.',
}

/** True if the session ended, or its account was locked. Only the sign-in page helps then. */
export function isShutOut(error: unknown): boolean {
  return isProblem(error, 'unauthenticated') || isProblem(error, 'account_locked')
}

/** A visit of the sign-in page that takes longer has failed, or the person stopped it. */
const LEAVING_MS = 10_000
let isLeaving = false

/**
 * Goes to the sign-in page, which leads back here and says why. Many calls may find out at the same time that the session
 * ended; only the first goes: the page says why once, and a further visit would abandon its answer.
 */
export function signInAgain(): void {
  const next = encodeURIComponent(location.pathname + location.search)
  if (!isLeaving) leave(() => location.assign(`/sign-in?next=${next}#ended`))
}

/** Goes to the sign-in page after the person ended the session. */
export function leaveSignedOut(): void {
  leave(() => location.replace('/sign-in#signed-out'))
}

function leave(go: () => void): void {
  isLeaving = true
  go()
  setTimeout(() => {
    isLeaving = false
  }, LEAVING_MS)
}
