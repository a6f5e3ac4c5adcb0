/** A real SMTP server for tests, which stores received mail. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'

/** A received mail, decoded as far as tests read it. */
export interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
}

/**
 * Behaviour of the server. @property isRefusing rejects every recipient. @property delayMs before it answers to a
 * recipient.
 */
export interface SmtpBehaviour {
  readonly user?: string
  readonly password?: string
  readonly isRefusing?: boolean
  readonly delayMs?: number
}

/** Starts a server on a free port. */
export async function startSmtp({ user, password, isRefusing, delayMs = 0 }: SmtpBehaviour = {}) {
  const mails: ReceivedMail[] = []
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS', ...(user === undefined ? ['AUTH'] : [])],
    allowInsecureAuth: true,
    authOptional: user === undefined,
    onAuth: ({ username, password: given }, _session, done) =>
      username === user && given === password ? done(null, { user: username }) : done(new Error('no')),
    onRcptTo: ({ address }, _session, done) => {
      const refusal = Object.assign(new Error(`no such mailbox as <${address}>`), { responseCode: 550 })
      void sleep(delayMs).then(() => done(isRefusing === true ? refusal : null))
    },
    onData: (stream, { envelope }, done) => {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        mails.push(parseMail(Buffer.concat(parts).toString('utf8'), envelope))
        done()
      })
    },
  })
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  return {
    port: readPort(server.server.address()),
    mails,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

/** A port on which nothing listens. */
export async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = readPort(server.address())
  server.close()
  await once(server, 'close')
  return port
}

function readPort(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

function parseMail(
  source: string,
  envelope: { mailFrom: { address: string } | false; rcptTo: { address: string }[] },
): ReceivedMail {
  const [head = '', ...rest] = source.split('\r\n\r\n')
  const headers = head
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
    .map((line): [string, string] => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ])
  return {
    from: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
    to: envelope.rcptTo.map(({ address }) => address),
    headers: new Map(headers),
    text: rest
      .join('\r\n\r\n')
      .replace(/=\r\n/g, '')
      .replace(/=([0-9A-F]{2})/g, (_match, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
  }
}
