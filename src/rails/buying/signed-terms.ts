/** An owner signs terms, not a URL: a signed call pays them or nothing. */
import { getAddress } from 'viem'
import { z } from 'zod'
import type { Address } from '../../providers/chain/port.ts'
import { hashRequest, type PurchaseRequest } from './request.ts'

/** A request and the payee of its offer. Asset and amount are those of the signed transfer to the purse. */
export interface SignableTerms {
  readonly request: PurchaseRequest
  readonly payTo: Address
}

const signed = z.looseObject({ kind: z.literal('purchase'), requestHash: z.string(), payTo: z.string() })

/** Members of the text that an owner signs. */
export function describeTerms({ request, payTo }: SignableTerms): Readonly<Record<string, string>> {
  return {
    url: request.url.href,
    method: request.method,
    requestHash: hashRequest(request),
    payTo: getAddress(payTo),
  }
}

/** True if a signed text is about exactly this request and payee. */
export function isSignedFor(message: string, terms: SignableTerms): boolean {
  const read = signed.safeParse(JSON.parse(message))
  const { requestHash, payTo } = describeTerms(terms)
  return read.success && read.data.requestHash === requestHash && read.data.payTo === payTo
}
