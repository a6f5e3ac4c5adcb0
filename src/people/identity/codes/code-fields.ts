/** Schemas of one-time code requests and responses. */
import { z } from 'zod'
import { Failure } from '../../../core/failures/failure.ts'
import { type Channel, channels, type Messages } from '../../../providers/messages/port.ts'

export const codeRequest = z.strictObject({
  channel: z.enum(channels).describe('Channel that delivers the code.'),
  destination: z
    .string()
    .min(1)
    .max(320)
    .describe('An e-mail address, or a phone number with country code, such as +4915112345678.'),
})
codeRequest.register(z.globalRegistry, { id: 'CodeRequest' })

/** Response to {@link codeRequest}; identical for known and unknown destinations. */
export const codeSent = z.strictObject({
  challengeId: z.string().describe('Challenge id, to send with the code.'),
  expiresAt: z.string().describe('Expiry of the code, ISO 8601 UTC.'),
  resendAfter: z.int().describe('Whole seconds until another code can be requested.'),
})
codeSent.register(z.globalRegistry, { id: 'CodeSent' })

export const codeVerification = z.strictObject({
  challengeId: z.string().min(1).max(64).describe('Challenge id from the code request.'),
  code: z
    .string()
    .regex(/^\d{6}$/, 'must be six digits')
    .describe('Six-digit code from the newest message.'),
})
codeVerification.register(z.globalRegistry, { id: 'CodeVerification' })

/** @throws Failure `invalid_request` on `channel` when this deployment does not support it. */
export function requireChannel(
  { channels: offered }: Pick<Messages, 'channels'>,
  channel: Channel | 'guest',
): void {
  if (channel !== 'guest' && offered.includes(channel)) return
  const message =
    offered.length === 0 ? 'this deployment offers no channel' : `must be ${offered.join(' or ')} here`
  throw new Failure('invalid_request', `channel: ${message}`, { issues: [{ path: 'channel', message }] })
}
