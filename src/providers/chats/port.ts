/** Messages to chats that an owner connects. Adapters: `slack` and `telegram`. Their texts are untrusted where agents and payees wrote them. */

/** Where a message goes. Each has a secret, which is in no answer, log or error. */
export type ChatTarget =
  | { readonly type: 'slack'; readonly webhookUrl: string }
  | { readonly type: 'telegram'; readonly botToken: string; readonly chatId: string }

/** @property lines already in one visible line each, without links; not yet escaped. @property url page of ours. */
export interface AnnouncementItem {
  readonly lines: readonly string[]
  readonly url: string
}

/** @property title our own words. */
export interface Announcement {
  readonly title: string
  readonly items: readonly AnnouncementItem[]
}

/**
 * @property problem code that the owner sees: `http_404`, `unreachable`, or the chat's own, such as `invalid_blocks`.
 * @property retryAfterSeconds pause that the chat asked for; null: none.
 */
export type ChatOutcome =
  | { readonly status: 'sent' }
  | { readonly status: 'failed'; readonly problem: string; readonly retryAfterSeconds: number | null }

export interface Chats {
  send(target: ChatTarget, announcement: Announcement): Promise<ChatOutcome>
}
