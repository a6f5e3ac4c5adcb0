/** Selects the card processor: without a Lithic key the sandbox issues cards itself, and production issues none. */
import type { Clock } from '../../core/base/clock.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Log } from '../../core/base/log.ts'
import { type CardConfig, listEventSecrets, listWebhookSecrets } from '../../core/config/cards.ts'
import { createLithicProcessor } from './lithic.ts'
import type { CardProcessor } from './port.ts'
import { createSandboxProcessor } from './sandbox.ts'

/** @param webhooks signing secrets of the sandbox's webhooks; null in production. */
export function createConfiguredProcessor(
  { cards }: CardConfig,
  {
    webhooks,
    ownOrigin,
    dataKey,
    clock,
    newId,
    log,
  }: {
    webhooks: { readonly lithicWebhookSecret: string } | null
    ownOrigin: () => string
    dataKey: Uint8Array
    clock: Clock
    newId: NewId
    log: Log
  },
): CardProcessor {
  const sandbox = webhooks?.lithicWebhookSecret ?? null
  const secrets = {
    secretsAt: listWebhookSecrets(cards, sandbox),
    eventSecretsAt: listEventSecrets(cards, sandbox),
  }
  if (webhooks === null || cards.apiKey !== null) return createLithicProcessor({ ...cards, ...secrets, log })
  const webhookUrl = () => `${ownOrigin()}/api/webhooks/lithic`
  return createSandboxProcessor({ webhookUrl, ...secrets, dataKey, clock, newId })
}
