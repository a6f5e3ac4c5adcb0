/**
 * Customers of Bridge, by KYC links: Bridge's page verifies the identity, and another takes the acceptance of its terms,
 * without which no account can be opened.
 * @see https://apidocs.bridge.xyz/platform/customers/customers/kyclinks
 */
import { z } from 'zod'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import { askBridge } from './ask-bridge.ts'
import type { BankCustomer, BankCustomerStatus, BankCustomers } from './customers.ts'

const text = z.string().min(1).max(255)
const page = z.url({ protocol: /^https?$/ }).max(4_096)
const link = z.object({
  id: text,
  kyc_link: page,
  tos_link: page,
  kyc_status: z.string(),
  tos_status: z.string(),
  customer_id: text.nullish(),
})

export function createBridgeCustomers({
  url,
  apiKey,
  log,
}: {
  readonly url: string
  readonly apiKey: string
  readonly log: Log
}): BankCustomers {
  const ask = async (path: string, post: { readonly key: string; readonly body: unknown } | null = null) => {
    try {
      return await askBridge({ url, apiKey }, path, post)
    } catch (cause) {
      throw unavailable('The banking provider cannot be reached.', cause)
    }
  }
  const read = ({ ok, status, text: body }: Awaited<ReturnType<typeof ask>>): BankCustomer => {
    // The answer holds the person's links and is not logged.
    if (!ok) throw unavailable(`The banking provider answered ${status}.`)
    const parsed = link.safeParse(jsonOr(body))
    if (parsed.success) return parseCustomer(parsed.data)
    throw unavailable('The banking provider returned an unexpected answer.')
  }
  return {
    async start({ id, name, email }) {
      const body = { type: 'individual', full_name: name, email }
      const answer = await ask('/v0/kyc_links', { key: id, body })
      // An address in use: the customer behind it may be somebody else, so it is never adopted.
      if (answer.status === 400 || answer.status === 422) {
        log.warn({ accountId: id, status: answer.status }, 'the banking provider refused a customer')
        return null
      }
      return read(answer)
    },
    read: async (linkId) => {
      const found = read(await ask(`/v0/kyc_links/${encodeURIComponent(linkId)}`))
      if (found.linkId !== linkId)
        throw unavailable('The banking provider answered with another verification.')
      return found
    },
  }
}

const endings: ReadonlyMap<string, BankCustomerStatus> = new Map([
  ['rejected', 'rejected'],
  ['paused', 'paused'],
  ['offboarded', 'paused'],
])

/** A customer is approved with the identity and the terms; every unknown status is open. */
function parseCustomer(found: z.output<typeof link>): BankCustomer {
  const customer = found.customer_id ?? null
  const isKycDone = found.kyc_status === 'approved'
  const isTermsAccepted = found.tos_status === 'approved'
  const isApproved = isKycDone && isTermsAccepted && customer !== null
  return {
    linkId: found.id,
    customer,
    status: isApproved ? 'approved' : (endings.get(found.kyc_status) ?? 'open'),
    kycUrl: found.kyc_link,
    termsUrl: found.tos_link,
    isKycDone,
    isTermsAccepted,
  }
}

function unavailable(detail: string, cause?: unknown): Failure {
  return new Failure(
    'provider_unavailable',
    detail,
    { retryAfter: 5, hint: 'Send the same request again later.' },
    { cause },
  )
}

function jsonOr(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}
