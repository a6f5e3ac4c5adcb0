/**
 * The banking provider port in the sandbox: issues accounts with valid check digits, and simulates the bank by
 * calling our own webhook.
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Clock } from '../../core/base/clock.ts'
import { type NewId, randomDigits } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import { callProvider } from '../http-client.ts'
import type { Rates } from '../rates/port.ts'
import { readEvent } from './bridge-events.ts'
import { abaCheckDigit, buildIban, ukCheckDigit } from './check-digits.ts'
import type { BankCurrency, BankInstructions, BankingProvider } from './port.ts'
import { createSandboxPayouts } from './sandbox-payouts.ts'
import { signBankingWebhook, verifyBankingWebhook } from './signature.ts'

const TIMEOUT_MS = 10_000

/**
 * Dependencies of the sandbox bank.
 * @property webhookUrl URL of our own webhook.
 * @property key signs the sandbox's webhooks.
 * @property otherKeys further keys that may sign webhooks.
 */
export interface SandboxBankingParts {
  readonly webhookUrl: () => string
  readonly key: KeyObject
  readonly otherKeys?: readonly KeyObject[]
  readonly rates: Rates
  readonly clock: Clock
  readonly newId: NewId
}

/** States of a successful deposit. */
const states = ['funds_received', 'payment_submitted', 'payment_processed'] as const

/** The sandbox's bank, which uses Bridge's message format. */
export function createSandboxBanking({
  webhookUrl,
  key,
  otherKeys = [],
  rates,
  clock,
  newId,
}: SandboxBankingParts): BankingProvider {
  const webhookKeys = [createPublicKey(key), ...otherKeys]
  const send = async (event: Record<string, unknown>): Promise<void> => {
    const body = JSON.stringify(event)
    const response = await callProvider({
      url: webhookUrl(),
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-webhook-signature': signBankingWebhook(body, { key, at: clock() }),
      },
      body,
      timeoutMs: TIMEOUT_MS,
    })
    if (!response.ok)
      throw new Failure('provider_unavailable', `The webhook answered ${response.status}.`, { retryAfter: 1 })
  }
  return {
    ...createSandboxPayouts({ rates }),
    name: 'sandbox',
    customers: null,
    deliversOnChain: false,
    verify: (delivery, now) => verifyBankingWebhook(delivery, webhookKeys, now),
    read: readEvent,
    open: async ({ id, currency }) => ({
      providerId: id,
      customer: null,
      status: 'active',
      bankName: 'Bursar Sandbox Bank',
      bankAddress: '1 Sandbox Square, Nowhere',
      instructions: instructions[currency](),
    }),
    play: async ({ providerId, amount, currency, from, memo }) => {
      const at = clock()
      const depositId = newId('evt', at)
      for (const state of states)
        await send({
          api_version: 'v0',
          event_id: newId('evt', clock()),
          event_category: 'virtual_account.activity',
          event_type: state === 'funds_received' ? 'created' : 'updated.status_transitioned',
          event_object_id: depositId,
          event_object_status: state,
          event_object: {
            id: depositId,
            type: state,
            virtual_account_id: providerId,
            amount,
            currency: currency.toLowerCase(),
            ...(from === null && memo === null ? {} : { source: { sender_name: from, reference: memo } }),
          },
          event_object_changes: {},
          event_created_at: clock().toISOString(),
        })
      return depositId
    },
    playPayout: async ({ id, providerId, state, amount, currency }) =>
      send({
        api_version: 'v0',
        event_id: newId('evt', clock()),
        event_category: 'transfer',
        event_type: 'updated.status_transitioned',
        event_object_id: providerId,
        event_object_status: state,
        event_object: {
          id: providerId,
          state,
          client_reference_id: id,
          amount,
          currency: currency.toLowerCase(),
        },
        event_object_changes: {},
        event_created_at: clock().toISOString(),
      }),
  }
}

const instructions: Readonly<Record<BankCurrency, () => BankInstructions>> = {
  USD: () => ({
    routingNumber: `12300001${abaCheckDigit('12300001')}`,
    accountNumber: randomDigits(12),
    rails: ['ach', 'wire'],
  }),
  EUR: () => ({ iban: buildIban('DE', `99999999${randomDigits(10)}`), bic: 'BRSRDEFFXXX', rails: ['sepa'] }),
  GBP: () => {
    const digits = randomDigits(7)
    return { sortCode: '089999', accountNumber: `${digits}${ukCheckDigit(digits)}`, rails: ['fps'] }
  },
  INR: () => {
    const accountNumber = randomDigits(14)
    return { accountNumber, ifsc: 'BRSR0000001', vpa: `${accountNumber}@bursar`, rails: ['imps', 'upi'] }
  },
}
