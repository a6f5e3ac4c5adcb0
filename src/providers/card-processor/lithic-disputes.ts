/**
 * Lithic's ways to get money back: an authorization that is given up before it clears, and a dispute after.
 * @see https://docs.lithic.com/reference/postdisputes
 */
import { z } from 'zod'
import { Failure } from '../../core/failures/failure.ts'
import { callProvider, type ProviderAnswer } from '../http-client.ts'
import { disputeObject, toDispute } from './lithic-messages.ts'
import type { CardDispute, DisputeRequest } from './port.ts'

const TIMEOUT_MS = 10_000

interface Connection {
  readonly url: string
  readonly apiKey: string
}

const reasons = {
  not_delivered: 'GOODS_SERVICES_NOT_RECEIVED',
  not_as_described: 'GOODS_SERVICES_NOT_AS_DESCRIBED',
  duplicate: 'DUPLICATED',
  fraudulent: 'FRAUD_OTHER',
  canceled: 'CANCELLED',
  wrong_amount: 'INCORRECT_AMOUNT',
} as const satisfies Record<DisputeRequest['reason'], string>

/** Asks Lithic to expire an authorization. @returns false when it refuses. */
export async function expireAuthorization(
  connection: Connection,
  { token }: { readonly token: string },
): Promise<boolean> {
  const path = `/v1/transactions/${encodeURIComponent(token)}/expire_authorization`
  const answer = await ask(connection, { method: 'POST', path })
  return isAnswered(answer)
}

const disputes = z.object({ data: z.array(disputeObject) })
const evidences = z.object({ data: z.array(z.object({ upload_status: z.string() })) })
const upload = z.object({ upload_url: z.url() })

/**
 * Opens a dispute and uploads its evidence. Lithic has no idempotency key here, so that the disputes of the transaction are read
 * first, and so is the evidence of the dispute.
 */
export async function disputeAtLithic(
  connection: Connection,
  request: DisputeRequest,
): Promise<CardDispute | null> {
  const query = new URLSearchParams({ transaction_tokens: request.transactionToken })
  const listed = await ask(connection, { method: 'GET', path: `/v1/disputes?${query}` })
  if (!isAnswered(listed)) return null
  const known = disputes
    .parse(JSON.parse(listed.text))
    .data.find((dispute) => dispute.transaction_token === request.transactionToken)
  const found = known ?? (await openDispute(connection, request))
  if (found === null) return null
  const dispute = toDispute(found)
  if (dispute.status === 'open') await uploadEvidence(connection, dispute, request.evidence)
  return dispute
}

async function openDispute(
  connection: Connection,
  { transactionToken, units, reason, note, filedAt }: DisputeRequest,
): Promise<z.output<typeof disputeObject> | null> {
  const opened = await ask(connection, {
    method: 'POST',
    path: '/v1/disputes',
    body: {
      transaction_token: transactionToken,
      amount: Number(units),
      reason: reasons[reason],
      customer_filed_date: filedAt.toISOString(),
      ...(note === null ? {} : { customer_note: note }),
    },
  })
  if (!isAnswered(opened)) return null
  const dispute = disputeObject.parse(JSON.parse(opened.text))
  if (dispute.transaction_token !== transactionToken)
    throw unconfirmed('the dispute is of another transaction')
  return dispute
}

async function uploadEvidence(
  connection: Connection,
  { token }: Pick<CardDispute, 'token'>,
  { filename, content }: DisputeRequest['evidence'],
): Promise<void> {
  const path = `/v1/disputes/${encodeURIComponent(token)}/evidences`
  const listed = await ask(connection, { method: 'GET', path })
  if (!isAnswered(listed)) throw unconfirmed(`the evidence could not be read (${listed.status})`)
  const isUploaded = evidences
    .parse(JSON.parse(listed.text))
    .data.some(({ upload_status: status }) => status === 'UPLOADED')
  if (isUploaded) return
  const begun = await ask(connection, { method: 'POST', path, body: { filename } })
  if (!isAnswered(begun)) throw unconfirmed(`the evidence was not taken (${begun.status})`)
  // The key is not for the place where files are stored.
  const stored = await callProvider({
    url: upload.parse(JSON.parse(begun.text)).upload_url,
    method: 'PUT',
    headers: { 'content-type': 'application/pdf' },
    body: Buffer.from(content),
    timeoutMs: TIMEOUT_MS,
  })
  if (!stored.ok) throw unconfirmed(`the evidence was not stored (${stored.status})`)
}

async function ask(
  { url, apiKey }: Connection,
  { method, path, body }: { method: 'GET' | 'POST'; path: string; body?: Record<string, unknown> },
): Promise<ProviderAnswer> {
  return callProvider({
    url: `${url}${path}`,
    method,
    headers: { authorization: apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    timeoutMs: TIMEOUT_MS,
  }).catch((cause: unknown) => {
    throw unconfirmed('no answer came', cause)
  })
}

/** @returns false for a final refusal. @throws Failure `provider_unavailable` where a retry may help. */
function isAnswered({ ok, status }: ProviderAnswer): boolean {
  if (ok) return true
  if (status >= 400 && status < 500 && ![401, 408, 409, 425, 429].includes(status)) return false
  throw unconfirmed(`it answered ${status}`)
}

function unconfirmed(why: string, cause?: unknown): Failure {
  return new Failure(
    'provider_unavailable',
    `The card processor did not confirm: ${why}.`,
    { retryAfter: 15 },
    { cause },
  )
}
