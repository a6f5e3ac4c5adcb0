/** The mail of an invitation. */
import type { MemberRole } from '../../../core/base/principal.ts'
import { visibleName } from '../../../core/base/untrusted-text.ts'
import type { Message } from '../../../providers/messages/port.ts'

const MAX_NAME = 40
/** Whoever invites must not be able to write addresses of pages into our mails. */
const LINKING = /[./:@\\]/

const powers: Readonly<Record<MemberRole, string>> = {
  owner: 'do everything in it',
  approver: 'read it and decide on what its agents ask for',
  viewer: 'read it',
  accountant: 'read its money and statements',
}

export function invitationMessage(
  { webOrigins: [page = ''] }: { readonly webOrigins: readonly string[] },
  { email, role, code, from, at }: { email: string; role: MemberRole; code: string; from: string; at: Date },
): Message {
  const name = visibleName(from, MAX_NAME)
  const who = name === '' || LINKING.test(name) ? 'An owner' : `“${name}”`
  return {
    channel: 'email',
    destination: email,
    subject: 'An invitation to a Bursar account',
    // The code is behind the #, so that no server on the way to the page logs it.
    text: `${who} invites you to a Bursar account, to ${powers[role]}. To accept, open ${page}/people/join#${code} within seven days and sign in with this e-mail address; it is valid for no other. The code is ${code}. If you do not know who invites you, do nothing.`,
    code,
    at,
  }
}
