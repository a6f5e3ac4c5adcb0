/**
 * Security notices: inform the owner, at every address, about additions to and removals from the account. A notice
 * that cannot be sent does not undo the change.
 */
import type { Log } from '../base/log.ts'
import type { Messages } from '../providers/messages.ts'
import type { Connection } from '../storage/database.ts'
import { addressesOf } from './codes/login-destinations.ts'

const events = {
  factor_begun: 'Enrollment of a second factor was started for',
  factor_activated: 'A second factor was activated for',
  passkey_added: 'A passkey was added to',
  address_added: 'A sign-in address was added to',
  signer_added: 'A wallet signing key was added to',
  factor_removed: 'The second factor was removed from',
  passkey_removed: 'A passkey was removed from',
  device_allowed: 'A program on another device was signed in to',
  agent_revoked: 'An agent’s key was revoked for',
  api_key_revoked: 'An API key was revoked for',
  browser_removed: 'A browser that got push messages was removed from',
  mails_reduced: 'Mails about requests for approval were reduced for',
  session_ended: 'A session was ended by another one of',
  sessions_ended: 'All other sessions were ended by one of',
} as const

export interface NoticeParts {
  readonly database: Connection
  readonly settings: { readonly dataKey: Uint8Array; readonly webOrigins: readonly string[] }
  readonly messages: Messages
  readonly log: Log
  readonly afterCommit: (work: () => Promise<void>) => void
}

/** Sends a notice after the commit. Accounts without an address receive none. */
export async function sendSecurityNotice(
  parts: NoticeParts,
  { accountId, notice, at }: { accountId: string; notice: keyof typeof events; at: Date },
): Promise<void> {
  const { messages, settings, log, afterCommit } = parts
  const [page = ''] = settings.webOrigins
  const advice = `If that was not you, lock the account and recover it at ${page}/sign-in.`
  const text = `${events[notice]} your Bursar account on ${at.toISOString()}. ${advice}`
  const addresses = (await addressesOf(parts, accountId)).filter(({ channel }) =>
    messages.channels.includes(channel),
  )
  afterCommit(async () => {
    const sent = addresses.map(({ channel, address: destination }) =>
      messages
        .send({ channel, destination, subject: 'A change to your Bursar account', text, code: '', at })
        .catch((err: unknown) => log.warn({ err, accountId, notice }, 'a security notice was not sent')),
    )
    await Promise.all(sent)
  })
}
