/**
 * Selects the messages adapters. A channel without a provider uses the outbox in the sandbox and is not offered in
 * production.
 */

import type { NewId } from '../../core/base/ids.ts'
import type { Log } from '../../core/base/log.ts'
import type { Config } from '../../core/config/read-config.ts'
import type { Database } from '../../storage/database.ts'
import { joinMessages } from './joined.ts'
import { createOutboxMessages } from './outbox.ts'
import type { Messages } from './port.ts'
import { createSmtpMessages } from './smtp.ts'
import { createTwilioMessages } from './twilio.ts'

export function createConfiguredMessages(
  { smtp, twilio, mode }: Pick<Config, 'smtp' | 'twilio' | 'mode'>,
  parts: { readonly database: Database; readonly newId: NewId; readonly log: Log },
): Messages {
  const { log } = parts
  return joinMessages([
    ...(smtp === null ? [] : [createSmtpMessages({ ...smtp, log })]),
    ...(twilio === null ? [] : [createTwilioMessages({ ...twilio, log })]),
    ...(mode === 'sandbox' ? [createOutboxMessages(parts)] : []),
  ])
}
