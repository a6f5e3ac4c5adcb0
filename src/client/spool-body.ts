/** Bodies that may be sent twice: to the seller, and with the purchase. */

/** Longest body that can be bought with. */
const MAX_BODY_BYTES = 4 * 1024 * 1024

export interface SpooledBody {
  /** The body, where it is known before it is sent. */
  readonly bytes: Uint8Array<ArrayBuffer> | undefined
  /** Members of the first request. */
  readonly send: () => RequestInit
  /** Members of a further request; only what is known can be sent again. */
  readonly resend: () => RequestInit
  /** The whole body, read to its end; null if it is too long. */
  readonly whole: () => Promise<Uint8Array<ArrayBuffer> | null>
}

/** @param given the body as the caller gave it, which says whether its length is known. */
export async function spoolBody(request: Request, given: unknown): Promise<SpooledBody> {
  if (request.body === null) return known(new Uint8Array(), undefined)
  const size = findSize(given)
  if (size !== null && size <= MAX_BODY_BYTES) {
    const bytes = new Uint8Array(await request.arrayBuffer())
    if (bytes.length <= MAX_BODY_BYTES) return known(bytes, bytes)
  }
  if (size !== null)
    return {
      bytes: undefined,
      send: () => ({ body: given as NonNullable<RequestInit['body']> }),
      resend: () => ({ body: given as NonNullable<RequestInit['body']> }),
      whole: async () => null,
    }
  return spoolStream(request.body)
}

function known(bytes: Uint8Array<ArrayBuffer>, body: Uint8Array<ArrayBuffer> | undefined): SpooledBody {
  const members = body === undefined ? {} : { body }
  return { bytes, send: () => members, resend: () => members, whole: async () => bytes }
}

/** Bytes of a body that is in memory or a file; null for a stream. */
function findSize(body: unknown): number | null {
  // A character has at most three bytes; a text near the limit is measured once it is read.
  if (typeof body === 'string') return body.length
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return body.byteLength
  if (body instanceof Blob) return body.size
  if (body instanceof URLSearchParams) return String(body).length
  if (!(body instanceof FormData)) return null
  let size = 0
  body.forEach((value) => {
    size += typeof value === 'string' ? value.length : value.size
  })
  return size
}

/** Keeps what passes, up to the limit. A seller may ask for a payment before it has read the body, which is then read on. */
function spoolStream(stream: ReadableStream<Uint8Array<ArrayBuffer>>): SpooledBody {
  const reader = stream.getReader()
  let parts: Uint8Array[] | null = []
  let size = 0
  let ended = false
  const next = async (): Promise<Uint8Array<ArrayBuffer> | undefined> => {
    const { done, value } = await reader.read()
    if (done) {
      ended = true
      return undefined
    }
    size += value.length
    if (size > MAX_BODY_BYTES) parts = null
    parts?.push(value)
    return value
  }
  const body = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const part = await next()
        if (part === undefined) controller.close()
        else controller.enqueue(part)
      },
    },
    { highWaterMark: 0 },
  )
  return {
    bytes: undefined,
    // `duplex` is not in the types of every runtime.
    send: () => ({ body, duplex: 'half' }) as RequestInit,
    resend: () => ({ body: concat(parts ?? []) }),
    whole: async () => {
      while (!ended && parts !== null) await next()
      return parts === null ? null : concat(parts)
    },
  }
}

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
