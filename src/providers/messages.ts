/** Messages to people by e-mail and SMS: one-time codes and security notices. */

/** How a message travels. */
export const channels = ['email', 'sms'] as const

/** One of {@link channels}. */
export type Channel = (typeof channels)[number]

/** A message to one person. */
export interface Message {
  readonly channel: Channel
  /** An e-mail address, or a phone number in E.164. */
  readonly destination: string
  readonly subject: string
  /** The whole text, with the code in it. */
  readonly text: string
  /** Empty where the message carries none. */
  readonly code: string
  readonly at: Date
}

/** The messages port. Adapters: `smtp` (e-mail), `twilio` (SMS), and the sandbox's `outbox` for both. */
export interface Messages {
  /** What this deployment can send by. */
  readonly channels: readonly Channel[]
  /** Sends one message. @throws Failure `provider_unavailable` where it was not taken. */
  send(message: Message): Promise<void>
}
