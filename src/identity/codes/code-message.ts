/** The text around a one-time code. @see https://wicg.github.io/sms-one-time-codes/ */
import type { Message } from '../../providers/messages.ts'
import type { Destination } from './destinations.ts'
import { CODE_SECONDS, type CodeKind } from './one-time-codes.ts'

const purposes: Record<CodeKind, string> = { otp: 'sign-in', recovery: 'account recovery' }

/** The message that carries a code. An SMS ends with the line that binds the code to our pages. */
export function codeMessage(
  { webOrigins }: { readonly webOrigins: readonly string[] },
  { kind, destination, code, at }: { kind: CodeKind; destination: Destination; code: string; at: Date },
): Message {
  const { channel, address } = destination
  const purpose = purposes[kind]
  const text = `${code} is your Bursar ${purpose} code. It is valid for ${CODE_SECONDS / 60} minutes. Never share it: nobody at Bursar asks for it.`
  const [page = ''] = webOrigins
  return {
    channel,
    destination: address,
    // A subject is shown on locked screens and kept in logs of mail servers.
    subject: `Your Bursar ${purpose} code`,
    text: channel === 'sms' ? `${text}\n\n@${new URL(page).hostname} #${code}` : text,
    code,
    at,
  }
}
