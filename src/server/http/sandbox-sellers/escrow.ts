/**
 * The sandbox's sellers by the x402 scheme `auth-capture`: `escrow` moves the payment into escrow, delivers, and captures a moment later,
 * or gives it back when it is asked first; `reclaimable` moves it there and does nothing more. They keep no state: the escrow tells.
 */
import { parseAbi, zeroAddress } from 'viem'
import { z } from 'zod'
import { timers } from '../../../core/base/timers.ts'
import type { Services } from '../../../kernel/context.ts'
import { type Chain, type Hex, isRefusedCall } from '../../../providers/chain/port.ts'
import {
  type EscrowPayment,
  escrowAddress,
  escrowCollectorAddress,
  escrowPaymentStruct,
  hashEscrowPayment,
} from '../../../providers/payment-escrow.ts'
import { buildEscrowPayment } from '../../../rails/buying/escrow.ts'
import type { EvidenceDocument } from '../../../rails/buying/evidence-document.ts'
import { toHex } from '../../../rails/buying/store.ts'
import { requirementV2, type Terms } from '../../../rails/selling/x402/terms.ts'
import type { SellerName } from '../../../sandbox/sellers/sellers.ts'
import type { HttpContext } from '../request.ts'
import { readSentPayment } from '../x402.ts'

/** How long a payment may be moved into escrow, and captured, in seconds. */
const SECONDS = {
  escrow: { valid: 60, capture: 120 },
  reclaimable: { valid: 15, capture: 60 },
} as const
type EscrowSellerName = keyof typeof SECONDS
/** What a client's clock and its way add to the deadlines that were offered. */
const SLACK_SECONDS = 5
const REFUND_SECONDS = 3_600
/** From the delivery to the capture: whoever asks before gets the money back from escrow. */
const CAPTURE_MS = 4_000
const RECEIPT_MS = 10_000
/** As long as buyers wait. */
const SILENCE_MS = 45_000

export function isEscrowSeller(name: SellerName): name is EscrowSellerName {
  return name in SECONDS
}

const abi = parseAbi([
  escrowPaymentStruct,
  'function authorize(PaymentInfo paymentInfo, uint256 amount, address tokenCollector, bytes collectorData)',
  'function capture(PaymentInfo paymentInfo, uint256 amount, uint16 feeBps, address feeReceiver)',
  'function void(PaymentInfo paymentInfo)',
])

const hex = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])
const whole = z.string().regex(/^\d{1,30}$/)
const sent = z.looseObject({
  accepted: z.looseObject({
    scheme: z.literal('auth-capture'),
    extra: z.looseObject({ captureDeadline: z.int().positive(), refundDeadline: z.int().positive() }),
  }),
  payload: z.looseObject({
    authorization: z.looseObject({ from: hex, value: whole, validBefore: whole }),
    signature: hex,
    salt: hex,
  }),
})

interface EscrowVisit {
  readonly name: EscrowSellerName
  readonly terms: Terms
  readonly goods: Response
  readonly c: HttpContext
}

/** Answers a request to such a seller. */
export async function serveEscrow(services: Services, visit: EscrowVisit): Promise<Response> {
  const { chain, clock, log } = services
  const { name, terms, goods, c } = visit
  const header = readSentPayment(c)
  if (header === null || header.generation !== 2) return ask(services, visit, 'payment required')
  const read = sent.safeParse(header.payload)
  if (!read.success) return ask(services, visit, 'the payment cannot be read')
  const { accepted, payload } = read.data
  const { captureDeadline, refundDeadline } = accepted.extra
  const { capture: seconds } = SECONDS[name]
  const latest = Math.floor(clock().getTime() / 1000) + seconds + SLACK_SECONDS
  if (captureDeadline > latest || refundDeadline > latest + REFUND_SECONDS)
    return ask(services, visit, 'the deadlines are others')
  const payment: EscrowPayment = {
    operator: chain.signer.address,
    payer: payload.authorization.from,
    receiver: terms.payTo,
    token: terms.asset,
    maxAmount: terms.units,
    preApprovalExpiry: Number(payload.authorization.validBefore),
    authorizationExpiry: captureDeadline,
    refundExpiry: refundDeadline,
    minFeeBps: 0,
    maxFeeBps: 0,
    feeReceiver: zeroAddress,
    salt: BigInt(payload.salt),
  }
  const taken = await authorize(chain, payment, payload.signature)
  if (taken === null) return ask(services, visit, 'the payment was not accepted')
  if (name === 'reclaimable') {
    await timers.sleep(SILENCE_MS, { signal: c.req.raw.signal, isIdle: true }).catch(() => {})
    c.env.incoming?.socket.destroy()
    return new Response(null, { status: 502 })
  }
  const report = (err: unknown) => log.warn({ err, seller: name }, 'a late capture failed')
  timers.after(CAPTURE_MS, () => void capture(chain, payment).catch(report), { isIdle: true })
  const receipt = { success: true, transaction: taken, network: terms.network.v2, payer: payment.payer }
  goods.headers.set('PAYMENT-RESPONSE', Buffer.from(JSON.stringify(receipt)).toString('base64'))
  return goods
}

function ask({ chain, clock }: Services, { name, terms }: EscrowVisit, error: string): Response {
  const { valid, capture } = SECONDS[name]
  const now = Math.floor(clock().getTime() / 1000)
  const exact = requirementV2(terms)
  const requirement = {
    ...exact,
    scheme: 'auth-capture',
    maxTimeoutSeconds: valid,
    extra: {
      ...exact.extra,
      captureAuthorizer: chain.signer.address,
      captureDeadline: now + capture,
      refundDeadline: now + capture + REFUND_SECONDS,
      feeRecipient: zeroAddress,
      minFeeBps: 0,
      maxFeeBps: 0,
    },
  }
  const { resource: url, description, mimeType } = terms
  const challenge = {
    x402Version: 2,
    error,
    resource: { url, description, mimeType },
    accepts: [requirement],
  }
  const required = Buffer.from(JSON.stringify(challenge)).toString('base64')
  return new Response('{}', {
    status: 402,
    headers: { 'Content-Type': 'application/json', 'PAYMENT-REQUIRED': required },
  })
}

/** Moves a payment into escrow, unless it is there. @returns the transaction; empty if it was there; null: it was refused. */
async function authorize(chain: Chain, payment: EscrowPayment, signature: Hex): Promise<string | null> {
  const hash = hashEscrowPayment(payment, chain.id)
  const isTaken = async () => (await chain.escrowState(hash, 'latest')).isCollected
  if (await isTaken()) return ''
  try {
    return await write(chain, 'authorize', [payment, payment.maxAmount, escrowCollectorAddress, signature])
  } catch (error) {
    if (!isRefusedCall(error)) throw error
    // Another presentation may have been faster.
    return (await isTaken()) ? '' : null
  }
}

async function capture(chain: Chain, payment: EscrowPayment): Promise<void> {
  const { capturable } = await chain.escrowState(hashEscrowPayment(payment, chain.id), 'latest')
  if (capturable > 0n) await write(chain, 'capture', [payment, capturable, 0, zeroAddress])
}

async function write(chain: Chain, functionName: string, args: readonly unknown[]): Promise<Hex> {
  const hash = await chain.signer.writeContract({ address: escrowAddress, abi, functionName, args })
  const { status } = await chain.signer.waitForTransactionReceipt({ hash, timeout: RECEIPT_MS })
  if (status !== 'success') throw new Error(`The escrow reverted ${functionName} in ${hash}.`)
  return hash
}

/**
 * Gives the payment of a purchase back from escrow. @returns `captured` if the seller has it, `none` if nobody has: it was given back, or never
 * came.
 */
export async function voidEscrowed(
  chain: Chain,
  { purchaseId, authorization, challenge }: EvidenceDocument,
): Promise<'voided' | 'captured' | 'none'> {
  const { payer, validBefore } = authorization
  if (validBefore === null) return 'none'
  const payment = buildEscrowPayment({
    purchaseId,
    offer: z.json().parse(challenge.offer),
    payer: toHex(payer),
    payTo: toHex(challenge.payTo),
    token: toHex(challenge.token),
    units: BigInt(challenge.units),
    validBefore: new Date(validBefore).getTime() / 1000,
  })
  const hash = hashEscrowPayment(payment, chain.id)
  const { capturable } = await chain.escrowState(hash, 'latest')
  try {
    if (capturable > 0n) {
      await write(chain, 'void', [payment])
      return 'voided'
    }
  } catch (error) {
    if (!isRefusedCall(error)) throw error
  }
  return (await chain.escrowState(hash, 'latest')).refundable === payment.maxAmount ? 'captured' : 'none'
}
