/** Shapes of the client's functions. */

export interface CallOptions {
  /** Repeats of this call are one call. Absent: a new one for each call, the same for its retries. */
  readonly idempotencyKey?: string
  /** Ends the call, its retries and its waiting. The operation may still happen: repeat with the same key to learn of it. */
  readonly signal?: AbortSignal
}

/** An operation. Path, query and body are members of one input. */
export type Call<Input, Answer> =
  Record<never, never> extends Input
    ? (input?: Input, options?: CallOptions) => Promise<Answer>
    : (input: Input, options?: CallOptions) => Promise<Answer>

/** `await` gives the first page; `for await` gives every entry of every page. */
export interface Pages<Page, Entry> extends PromiseLike<Page>, AsyncIterable<Entry> {}

/** An operation that lists. */
export type List<Input, Page, Entry> =
  Record<never, never> extends Input
    ? (input?: Input, options?: CallOptions) => Pages<Page, Entry>
    : (input: Input, options?: CallOptions) => Pages<Page, Entry>
