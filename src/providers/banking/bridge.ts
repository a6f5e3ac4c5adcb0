/**
 * The banking provider port over Bridge.
 * @see https://apidocs.bridge.xyz/api-reference/virtual-accounts/create-a-virtual-account
 */
import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import type { Log } from '../../core/base/log.ts'
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import { callProvider } from '../http-client.ts'
import { createBridgeCustomers } from './bridge-customers.ts'
import { readEvent } from './bridge-events.ts'
import { createBridgePayouts } from './bridge-payouts.ts'
import type { AccountOrder, BankInstructions, BankingProvider } from './port.ts'
import { verifyBankingWebhook } from './signature.ts'

/** Total time for opening an account; a person is waiting. */
const TIMEOUT_MS = 8_000

/**
 * Connection to Bridge.
 * @property apiKey null: accounts cannot be opened.
 * @property webhookKeys public keys that may sign webhooks.
 */
export interface BridgeParts {
  readonly url: string
  readonly apiKey: string | null
  readonly webhookKeys: readonly KeyObject[]
  readonly log: Log
}

const text = z.string().min(1).max(255)
const account = z.object({
  id: text,
  status: z.string(),
  source_deposit_instructions: z.object({
    payment_rails: z.array(text).optional(),
    bank_name: text.optional(),
    bank_address: text.optional(),
    bank_routing_number: text.optional(),
    bank_account_number: text.optional(),
    iban: text.optional(),
    bic: text.optional(),
    account_number: text.optional(),
    sort_code: text.optional(),
  }),
})
type Instructions = z.output<typeof account>['source_deposit_instructions']

export function createBridgeBanking({ url, apiKey, webhookKeys, log }: BridgeParts): BankingProvider {
  const send = async <Shape extends z.ZodType>(
    path: string,
    key: string,
    { body, shape, signal }: { body: unknown; shape: Shape; signal: AbortSignal },
  ): Promise<z.output<Shape>> => {
    const response = await callProvider({
      url: `${url}${path}`,
      method: 'POST',
      headers: { 'api-key': apiKey ?? '', 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(body),
      timeoutMs: TIMEOUT_MS,
      signal,
    })
    if (isRefusal(response.status)) throw buildRefusal(response.status)
    if (!response.ok) throw new Error(`the provider answered ${response.status}`)
    return shape.parse(JSON.parse(response.text))
  }
  return {
    ...createBridgePayouts({ url, apiKey, log }),
    name: 'bridge',
    customers: apiKey === null ? null : createBridgeCustomers({ url, apiKey, log }),
    deliversOnChain: true,
    verify: (delivery, now) => verifyBankingWebhook(delivery, webhookKeys, now),
    read: readEvent,
    open: async ({ id, currency, holder, destination }) => {
      const { customer } = holder
      if (apiKey === null || destination === null || currency === 'INR' || customer === null)
        throw new Failure(
          'provider_unavailable',
          `The banking provider cannot open this account in ${currency}.`,
          {
            isFinal: true,
            retryAfter: 60,
          },
        )
      const signal = timers.deadline(TIMEOUT_MS)
      try {
        const order = {
          source: { currency: currency.toLowerCase() },
          destination: {
            currency: destination.token.toLowerCase(),
            payment_rail: destination.chain.replace('-', '_'),
            address: destination.address,
          },
        }
        const opened = await send(`/v0/customers/${encodeURIComponent(customer)}/virtual_accounts`, id, {
          body: order,
          shape: account,
          signal,
        })
        const depositInstructions = opened.source_deposit_instructions
        return {
          providerId: opened.id,
          customer,
          status: opened.status === 'activated' ? 'active' : 'pending',
          bankName: depositInstructions.bank_name ?? '',
          bankAddress: depositInstructions.bank_address ?? '',
          instructions: parseInstructions(currency, depositInstructions),
        }
      } catch (cause) {
        log.error({ err: cause, virtualAccountId: id }, 'a virtual account could not be opened')
        if (cause instanceof Failure) throw cause
        throw new Failure(
          'provider_unavailable',
          'The banking provider did not confirm the account; the request is retried.',
          { retryAfter: 5, hint: 'Send the request again, or read GET /api/banking in a minute.' },
          { cause },
        )
      }
    },
    play: null,
    playPayout: null,
  }
}

/** A final rejection: neither a conflict nor a status that a retry may fix. */
function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && ![408, 409, 425, 429].includes(status)
}

function buildRefusal(status: number): Failure {
  return new Failure('provider_unavailable', `The banking provider refused the account (${status}).`, {
    isFinal: true,
    retryAfter: 60,
  })
}

/** @throws Error when the provider omitted a required instruction. */
function parseInstructions(
  currency: AccountOrder['currency'],
  depositInstructions: Instructions,
): BankInstructions {
  const rails = (depositInstructions.payment_rails ?? []).map((rail) => rail.replace(/_push$/, ''))
  const need = (name: keyof Instructions): string => {
    const value = depositInstructions[name]
    if (typeof value !== 'string') throw new Error(`the provider omitted ${name}`)
    return value
  }
  if (currency === 'EUR') return { iban: need('iban'), bic: need('bic'), rails }
  if (currency === 'GBP') return { sortCode: need('sort_code'), accountNumber: need('account_number'), rails }
  return { routingNumber: need('bank_routing_number'), accountNumber: need('bank_account_number'), rails }
}
