/** Messages to people by e-mail and SMS: one-time codes and security notices. */

/** Message channels. */
export const channels = ['email', 'sms'] as const

export type Channel = (typeof channels)[number]

export interface Message {
  readonly channel: Channel
  /** E-mail address, or phone number in E.164. */
  readonly destination: string
  readonly subject: string
  /** Full text, including the code. */
  readonly text: string
  /** Empty for a message without a code. */
  readonly code: string
  readonly at: Date
}

/** The messages port. Adapters: `smtp` (e-mail), `twilio` (SMS), and the sandbox's `outbox` for both. */
export interface Messages {
  /** Channels this deployment can send on. */
  readonly channels: readonly Channel[]
  /** Sends one message. @throws Failure `provider_unavailable` when it was not accepted. */
  send(message: Message): Promise<void>
}
