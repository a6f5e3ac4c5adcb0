/** What clients send and get around one-time codes. */
import { z } from 'zod'
import { Failure } from '../../failures/failure.ts'
import { type Channel, channels, type Messages } from '../../providers/messages.ts'

/** Asking for a code. */
export const codeRequest = z.strictObject({
  channel: z.enum(channels).describe('How the code travels.'),
  destination: z
    .string()
    .min(1)
    .max(320)
    .describe('An e-mail address, or a phone number with its country, such as +4915112345678.'),
})

/** The answer to {@link codeRequest}, whoever is behind the destination. */
export const codeSent = z.strictObject({
  challengeId: z.string().describe('Send it back with the code.'),
  expiresAt: z.string().describe('When the code ends, ISO 8601 UTC.'),
  resendAfter: z.int().describe('Whole seconds until another code can be asked for.'),
})

/** Showing a code. */
export const codeVerification = z.strictObject({
  challengeId: z.string().min(1).max(64).describe('As it was answered when the code was asked for.'),
  code: z
    .string()
    .regex(/^\d{6}$/, 'must be six digits')
    .describe('The six digits of the newest message.'),
})

/** @throws Failure `invalid_request` on `channel` where this deployment cannot send by it. */
export function requireChannel(
  { channels: offered }: Pick<Messages, 'channels'>,
  channel: Channel | 'guest',
): void {
  if (channel !== 'guest' && offered.includes(channel)) return
  const message = offered.length === 0 ? 'no channel is offered here' : `must be ${offered.join(' or ')} here`
  throw new Failure('invalid_request', `channel: ${message}`, { issues: [{ path: 'channel', message }] })
}
