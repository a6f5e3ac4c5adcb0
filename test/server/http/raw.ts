/** Raw bytes over a socket, which no HTTP client would send. */
import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly body: string
}

/**
 * Sends bytes and reads until the other side closes. @returns the received text, or null if the socket did not close in
 * time.
 */
export function sendRaw(
  port: number,
  bytes: string | Buffer,
  { withinMs = 3_000 }: { readonly withinMs?: number } = {},
): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    const timer = setTimeout(() => {
      socket.destroy()
      resolve(null)
    }, withinMs)
    socket.setEncoding('utf8')
    socket.on('data', (part: string) => {
      text += part
    })
    // A reset after the answer ends it too.
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(text)
    })
    socket.write(bytes)
  })
}

/** The first final answer in the received text. */
export function answerIn(text: string): RawAnswer {
  const final = text.replace(/^HTTP\/1\.1 1\d\d [^\r]*\r\n\r\n/, '')
  const [head = '', ...rest] = final.split('\r\n\r\n')
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0), head, body: rest.join('\r\n\r\n') }
}
