/** x402 over HTTP: payments and receipts travel in headers, the challenge of v1 in the body and that of v2 in a header. */
import { Failure } from '../../core/failures/failure.ts'
import type { ChallengeOutcome, Generation, PaidOutcome, SentPayment } from '../../rails/selling/x402/sale.ts'

/** Location of payments in HTTP requests, as named in challenges. */
export const PAYMENT_HEADERS = 'X-PAYMENT or PAYMENT-SIGNATURE header'

const headers: readonly (readonly [Generation, string])[] = [
  [1, 'X-PAYMENT'],
  [2, 'PAYMENT-SIGNATURE'],
]

/** A request whose headers can be read. */
interface HeaderReader {
  readonly req: { header(name: string): string | undefined }
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** Checks whether a request carries a payment, valid or not. */
export function isPaid(c: HeaderReader): boolean {
  return headers.some(([, name]) => c.req.header(name) !== undefined)
}

/** The payment of a request, or null. @throws Failure `ambiguous_credentials` when the headers of both generations are present. */
export function readSentPayment(c: HeaderReader): SentPayment | null {
  const sent = headers.flatMap(([generation, place]): SentPayment[] => {
    const encoded = c.req.header(place)
    if (encoded === undefined) return []
    return [{ generation, place, payload: decodePayload(encoded), form: 'base64 of the JSON of a payment' }]
  })
  const [payment = null, other] = sent
  if (other === undefined) return payment
  throw new Failure('ambiguous_credentials', 'Both X-PAYMENT and PAYMENT-SIGNATURE were sent.', {
    hint: 'Send one payment, in the header of your x402 version.',
  })
}

/** A sale's outcome as a response: 200 with the receipt in a header, or 402. */
export function saleResponse(outcome: PaidOutcome | ChallengeOutcome): Response {
  if (outcome.status === 'paid')
    return Response.json(outcome.answer, {
      headers: { [outcome.receiptHeader]: outcome.receipt, 'Cache-Control': 'no-store' },
    })
  return new Response(outcome.v1, {
    status: 402,
    headers: {
      'Content-Type': 'application/json',
      'PAYMENT-REQUIRED': Buffer.from(outcome.v2).toString('base64'),
      'Cache-Control': 'no-store',
    },
  })
}

function decodePayload(encoded: string): unknown {
  try {
    return BASE64.test(encoded) ? JSON.parse(Buffer.from(encoded, 'base64').toString('utf8')) : undefined
  } catch {
    return undefined
  }
}
