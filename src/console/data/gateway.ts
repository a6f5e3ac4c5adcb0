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

/** A failure whose message is written for people. */
export class WordedError extends Error {}

/** Says a failure in a sentence for people. Hints that name routes or members are for programs and left out. */
export function describeError(error: unknown): string {
  if (error instanceof BursarUnreachable)
    return 'Bursar did not answer, so it is not known whether this was done. Press again in a moment: nothing is paid twice.'
  if (error instanceof WordedError) return error.message
  if (!(error instanceof BursarProblem))
    return browserSentences[nameError(error)] ?? 'Something went wrong here.'
  if (error.code === 'mfa_enrollment_required')
    return 'This needs a second factor. Add one under Security first.'
  const issues = listIssues(error)
  const said = issues
    .map(({ path, words }) => (path === '' ? words : `${nameOfMember(path)}: ${words}`))
    .join(' ')
  const { hint = '', message, problem } = error
  const detail = isForPrograms(message) ? `${problem.title}.` : message
  return [said === '' ? detail : said, isForPrograms(hint) ? '' : hint]
    .filter((words) => words !== '')
    .join(' ')
}

/** True for words that name routes or members. */
function isForPrograms(words: string): boolean {
  return /\b(GET|POST|PUT|PATCH|DELETE) \/|\/api\/|Authorization|Idempotency-Key|"|`/.test(words)
}

/** Something that a person entered, and what is wrong with it. */
export interface EntryIssue {
  /** Member of the request, such as `account.iban`. */
  readonly path: string
  readonly words: string
}

/** Members that a refusal is about, where the gateway names none. */
const membersOfCodes: Readonly<Record<string, string>> = {
  insufficient_funds: 'amount',
  aml_blocked: 'destination',
}

/** Lists what is wrong with what was entered, by member; nothing for other failures. */
export function listIssues(error: unknown): readonly EntryIssue[] {
  if (!(error instanceof BursarProblem)) return []
  return (error.problem.issues ?? []).map(({ path = '', message = '' }) => ({
    path,
    words: entryWords(message),
  }))
}

/** The member that a refusal without issues is about; undefined for most. */
export function findMember(error: unknown): string | undefined {
  return error instanceof BursarProblem ? membersOfCodes[error.code] : undefined
}

/** A schema's message as a sentence: "must be …", "is required". */
function entryWords(message: string): string {
  const sentence = message.startsWith('is ')
    ? `This ${message}`
    : message.charAt(0).toUpperCase() + message.slice(1)
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}

/** A member's name in words: `account.accountNumber` is "Account number". */
function nameOfMember(path: string): string {
  const words = (path.split('.').at(-1) ?? '').replaceAll(
    /(?<=[a-z])[A-Z]/g,
    (letter) => ` ${letter.toLowerCase()}`,
  )
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function nameError(error: unknown): string {
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

/** True while the page shows that its session ended, and keeps what was entered. */
export const hasEnded = signal(false)

/** When something was entered last on this page, and not sent. */
let isEntered = false

/** Watches what is entered, so that it is kept when the session ends. */
export function watchEntries(): void {
  addEventListener('input', () => {
    isEntered = true
  })
}

/** Forgets what was entered: it was sent, or its page was left. */
export function forgetEntries(): void {
  isEntered = false
}

/**
 * Goes to the sign-in page, which leads back here and says why. Many calls may find out at the same time that the session
 * ended; only the first goes: the page says why once, and a further visit would abandon its answer. A page on which something
 * was entered stays, and asks for a sign-in in another tab.
 */
export function signInAgain(): void {
  if (isEntered) hasEnded.value = true
  else goToSignIn()
}

/** Leaves the page for the sign-in, whatever was entered. */
export function goToSignIn(): void {
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
