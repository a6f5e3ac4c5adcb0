/**
 * Selects the banking provider: without a Bridge key the sandbox simulates the bank, and production opens no
 * accounts.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto'
import type { Clock } from '../../core/base/clock.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Log } from '../../core/base/log.ts'
import type { CardConfig } from '../../core/config/cards.ts'
import type { Rates } from '../rates/port.ts'
import { createBridgeBanking } from './bridge.ts'
import type { BankingProvider } from './port.ts'
import { createSandboxBanking } from './sandbox.ts'

/** @param webhooks signing keys of the sandbox's webhooks; null in production. */
export function createConfiguredBanking(
  { banking }: CardConfig,
  {
    webhooks,
    ownOrigin,
    rates,
    clock,
    newId,
    log,
  }: {
    webhooks: { readonly bridgeWebhookPrivateKey: string } | null
    ownOrigin: () => string
    rates: Rates
    clock: Clock
    newId: NewId
    log: Log
  },
): BankingProvider {
  const { webhookPublicKey: pem } = banking
  const bridgeKeys = pem === null ? [] : [createPublicKey(pem)]
  const key = webhooks === null ? null : createPrivateKey(webhooks.bridgeWebhookPrivateKey)
  if (key === null || banking.apiKey !== null) {
    const webhookKeys = key === null ? bridgeKeys : [createPublicKey(key), ...bridgeKeys]
    return createBridgeBanking({ ...banking, webhookKeys, log })
  }
  return createSandboxBanking({
    webhookUrl: () => `${ownOrigin()}/api/webhooks/bridge`,
    key,
    otherKeys: bridgeKeys,
    rates,
    clock,
    newId,
  })
}
