/** Message texts of one-time codes. @see https://wicg.github.io/sms-one-time-codes/ */
import type { Message } from '../../../providers/messages/port.ts'
import type { Destination } from './destinations.ts'
import type { CodeKind } from './one-time-codes.ts'

const purposes: Record<CodeKind, string> = { otp: 'sign-in', recovery: 'account recovery' }

/** An SMS ends with the line that binds the code to our origin. */
export function codeMessage(
  { webOrigins }: { readonly webOrigins: readonly string[] },
  {
    kind,
    destination,
    code,
    expiresAt,
    at,
  }: { kind: CodeKind; destination: Destination; code: string; expiresAt: Date; at: Date },
): Message {
  const { channel, address } = destination
  const purpose = purposes[kind]
  const minutes = Math.ceil((expiresAt.getTime() - at.getTime()) / 60_000)
  const text = `${code} is your Bursar ${purpose} code. It is valid for ${minutes === 1 ? 'one minute' : `${minutes} minutes`}. Never share it: Bursar staff will never ask for it.`
  const [page = ''] = webOrigins
  return {
    channel,
    destination: address,
    // No code in the subject, which appears on lock screens and in mail server logs.
    subject: `Your Bursar ${purpose} code`,
    text: channel === 'sms' ? `${text}\n\n@${new URL(page).hostname} #${code}` : text,
    code,
    at,
  }
}
