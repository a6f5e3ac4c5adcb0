/** A request as its owner and its key see it. */
import { z } from 'zod'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { toDecimal } from '../../core/money/money.ts'
import { type PaymentRequest, parseAsset, type RequestArrival, readStatus, requestStatuses } from './store.ts'

/** Path of the public pages, which are named by the token of a request. */
export const PAY_PATH = '/pay'

const payment = z.strictObject({
  kind: z.enum(['transfer', 'x402', 'bank']).describe('How it was paid.'),
  id: z.string().describe('Its entry in the activity; of x402 its `pay_…`.'),
  amount: z.string().describe('Decimal of the asset.'),
  at: z.string().describe('When it arrived, ISO 8601 UTC.'),
  late: z.boolean().describe('After it expired or was canceled.'),
  reversed: z.boolean().describe('Taken back since; it does not count.'),
})

export const requestView = z.strictObject({
  requestId: z.string().describe('`req_…`'),
  status: z.enum(requestStatuses).describe('Status.'),
  url: z.string().describe('Public page for the payer.'),
  x402Url: z.string().nullable().describe('URL that is paid by x402; null: not in this asset.'),
  amount: z.string().describe('Amount asked for.'),
  asset: z.string().describe('Asset by symbol.'),
  received: z.string().describe('What arrived for it.'),
  overpaid: z.string().describe('What arrived above `amount`.'),
  payee: untrustedTextOrNull('Name that the page shows; null: none.'),
  memo: untrustedTextOrNull('What it is for.'),
  reference: z.string().describe('Creditor reference (ISO 11649), for the text of a bank transfer.'),
  virtualAccountId: z.string().nullable().describe('`va_…`: bank account that the page shows.'),
  expiresAt: z.string().describe('ISO 8601 UTC.'),
  agentId: z.string().nullable().describe('Key that made it; null: the owner.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
  payments: z.array(payment).describe('What arrived for it, oldest first, at most 100.'),
})
requestView.register(z.globalRegistry, { id: 'PaymentRequest' })

/** @param now of the calendar. @param origin public origin. */
export function viewRequest(
  request: PaymentRequest,
  arrivals: readonly RequestArrival[],
  { now, origin }: { now: Date; origin: string },
): z.input<typeof requestView> {
  const asset = parseAsset(request.asset)
  const { units, received_units: received } = request
  const url = `${origin}${PAY_PATH}/${request.token}`
  return {
    requestId: request.id,
    status: readStatus(request, now),
    url,
    x402Url: asset === 'USDC' ? `${url}/x402` : null,
    amount: toDecimal({ asset, units }),
    asset,
    received: toDecimal({ asset, units: received }),
    overpaid: toDecimal({ asset, units: received > units ? received - units : 0n }),
    payee: request.payee,
    memo: request.memo,
    reference: request.reference,
    virtualAccountId: request.virtual_account_id,
    expiresAt: request.expires_at.toISOString(),
    agentId: request.key_id,
    createdAt: request.created_at.toISOString(),
    payments: arrivals.map(viewPayment),
  }
}

function viewPayment(arrival: RequestArrival): z.input<typeof payment> {
  if (arrival.kind === null) throw new Error(`${arrival.entry_id} pays no request`)
  return {
    kind: arrival.kind,
    id: arrival.payment_id ?? arrival.entry_id,
    amount: toDecimal({ asset: parseAsset(arrival.asset), units: arrival.units }),
    at: arrival.at.toISOString(),
    late: arrival.is_late,
    reversed: arrival.reversed_at !== null,
  }
}
