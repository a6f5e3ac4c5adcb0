/**
 * Payments by the owner, each made once. A payment without an answer may have been made: the same payment, pressed
 * again, repeats the same request and so asks for its outcome, even from a dialog that was opened anew, after a reload
 * and in another tab. Open payments are kept in the browser for each account until their outcome or the sign-out; names of
 * payments are hashes, so that no payee is kept.
 */
import { BursarProblem } from '../../client/problem.ts'

/** Members that a press adds to a request: a signature, or a quote. The chain publishes the signature: it is no secret. */
export interface Signed {
  readonly intentId?: string
  readonly signature?: string
  readonly quoteId?: string
}

/** One payment until its outcome is known. */
export interface Attempt {
  readonly idempotencyKey: string
  /** Signs or quotes once: a repeated request must be the same in every member. */
  readonly sign: (signing: () => Promise<Signed>) => Promise<Signed>
}

interface OpenPayment {
  readonly idempotencyKey: string
  readonly begunAt: string
  readonly signed?: Signed
}
/** The part of the browser's storage that is used here. */
interface PaymentStorage {
  getItem(name: string): string | null
  setItem(name: string, text: string): void
  removeItem(name: string): void
}

type OpenPayments = Readonly<Record<string, OpenPayment>>

/**
 * @property accountId reads the account that is signed in.
 * @property tellRepeated told when a payment has an answer that an earlier press, at `begunAt`, began.
 */
interface Keeper {
  readonly storage: PaymentStorage
  readonly accountId: () => Promise<string>
  readonly tellRepeated?: (begunAt: string) => void
}

/** How long the gateway knows an idempotency key. Later it would take a repetition for a new payment anyway. */
const KNOWN_MS = 24 * 60 * 60 * 1000

let keeper: Keeper | null = null
/** Where nothing keeps them, payments are open as long as the page. */
let ofPage: OpenPayments = {}

/** Keeps open payments in the browser from now on. */
export function keepPayments(where: Keeper): void {
  keeper = where
}

/** Forgets the open payments of an account. Call it at sign-out. */
export function forgetPayments(accountId: string): void {
  ofPage = {}
  keeper?.storage.removeItem(nameStorageKey(accountId))
}

function nameStorageKey(accountId: string): string {
  return `open-payments ${accountId}`
}

/**
 * Makes a payment. @param operation its name @param terms what the person asked for
 * @param call sends it; repeats for a second factor keep the attempt
 */
export async function payOnce<Answer>(
  operation: string,
  terms: object,
  call: (attempt: Attempt) => Promise<Answer>,
): Promise<Answer> {
  const place = keeper === null ? null : nameStorageKey(await keeper.accountId())
  const name = await hashText(`${operation} ${JSON.stringify(terms)}`)
  const known = readOpen(place)[name]
  const payment = known ?? { idempotencyKey: crypto.randomUUID(), begunAt: new Date().toISOString() }
  const keep = (kept: OpenPayment) => writeOpen(place, { ...readOpen(place), [name]: kept })
  const forget = () => {
    const { [name]: _, ...others } = readOpen(place)
    writeOpen(place, others)
  }
  keep(payment)
  try {
    const answer = await call({
      idempotencyKey: payment.idempotencyKey,
      sign: async (signing) => {
        const before = readOpen(place)[name]?.signed
        if (before !== undefined) return before
        const own = await signing()
        // Another tab may have signed the same payment meanwhile.
        const signed = readOpen(place)[name]?.signed ?? own
        keep({ ...payment, signed })
        return signed
      },
    })
    forget()
    if (known !== undefined) keeper?.tellRepeated?.(known.begunAt)
    return answer
  } catch (error) {
    if (isRefusal(error)) forget()
    throw error
  }
}

async function hashText(text: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  return [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

function readOpen(place: string | null): OpenPayments {
  if (keeper === null || place === null) return ofPage
  const kept = parseOpen(keeper.storage.getItem(place))
  const since = new Date(Date.now() - KNOWN_MS).toISOString()
  return Object.fromEntries(Object.entries(kept).filter(([, { begunAt }]) => begunAt > since))
}

function writeOpen(place: string | null, payments: OpenPayments): void {
  if (keeper === null || place === null) ofPage = payments
  else if (Object.keys(payments).length === 0) keeper.storage.removeItem(place)
  else keeper.storage.setItem(place, JSON.stringify(payments))
}

/** Reads what this page wrote; anything else counts as nothing. */
function parseOpen(text: string | null): OpenPayments {
  try {
    const kept: unknown = JSON.parse(text ?? '{}')
    return isRecord(kept)
      ? Object.fromEntries(
          Object.entries(kept).flatMap(([name, payment]) =>
            isOpenPayment(payment) ? [[name, payment]] : [],
          ),
        )
      : {}
  } catch {
    return {}
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isOpenPayment(value: unknown): value is OpenPayment {
  if (!isRecord(value)) return false
  const { idempotencyKey, begunAt, signed } = value
  const isSigned =
    signed === undefined ||
    (isRecord(signed) && Object.values(signed).every((one) => typeof one === 'string'))
  return typeof idempotencyKey === 'string' && typeof begunAt === 'string' && isSigned
}

/** Statuses under which the call may run or have run: signed out, too slow, in progress, locked, too many, failed. */
const undecided: ReadonlySet<number> = new Set([401, 408, 409, 423, 429])

/** True if the gateway certainly did not pay, so that the next press is a new payment. */
function isRefusal(error: unknown): boolean {
  return error instanceof BursarProblem && error.status < 500 && !undecided.has(error.status)
}
