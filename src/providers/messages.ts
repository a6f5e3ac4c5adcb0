/** Messages to people: one-time codes by e-mail and SMS. */

/** How a message travels. */
export const channels = ['email', 'sms'] as const

/** One of {@link channels}. */
export type Channel = (typeof channels)[number]

/** A message that carries a code. */
export interface Message {
  readonly channel: Channel
  /** An e-mail address, or a phone number in E.164. */
  readonly destination: string
  readonly subject: string
  /** The whole text, with the code in it. */
  readonly text: string
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
