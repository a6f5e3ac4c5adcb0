/** E-mail over SMTP (`SMTP_URL`). @see https://www.rfc-editor.org/rfc/rfc5321 */
import type { Log } from '../../core/base/log.ts'
import { type Cancel, timers } from '../../core/base/timers.ts'
import { messageNotSent } from './not-sent.ts'
import type { Messages } from './port.ts'

/** Mail server and sender. */
export interface SmtpOptions {
  /** `smtps://user:password@host:465` uses TLS from the first byte; `smtp://` upgrades if the server supports it. */
  readonly url: string
  /** Sender, such as `Bursar <no-reply@example.com>`. */
  readonly from: string
  readonly log: Log
  /** Time limit for the whole delivery; a person is waiting. */
  readonly timeoutMs?: number
}

export function createSmtpMessages({ url, from, log, timeoutMs = 5000 }: SmtpOptions): Messages {
  const server = parseServer(url)
  return {
    channels: ['email'],
    send: async ({ destination, subject, text, at }) => {
      // Loaded on first use, because most processes never send mail.
      const { createTransport } = await import('nodemailer')
      const transport = createTransport({
        ...server,
        dnsTimeout: timeoutMs,
        connectionTimeout: timeoutMs,
        greetingTimeout: timeoutMs,
        socketTimeout: timeoutMs,
        disableFileAccess: true,
        disableUrlAccess: true,
      })
      const deadline = deadlineIn(timeoutMs)
      try {
        const mail = {
          from,
          to: { name: '', address: destination },
          subject,
          text,
          date: at,
          xMailer: false,
        } as const
        await Promise.race([transport.sendMail(mail), deadline.passed])
      } catch (error) {
        throw messageNotSent(log, 'mail server', describeError(error))
      } finally {
        deadline.clear()
        transport.close()
      }
    },
  }
}

/** Splits the URL here, because a decoded password may contain any character. */
function parseServer(url: string) {
  const { protocol, hostname, port, username, password } = new URL(url)
  const isTls = protocol === 'smtps:'
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? (isTls ? 465 : 587) : Number(port),
    secure: isTls,
    ...(username === ''
      ? {}
      : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
  }
}

/** Deadline for the whole delivery: a server that keeps sending data never reaches an idle timeout. */
function deadlineIn(timeoutMs: number) {
  let cancel: Cancel | undefined
  const passed = new Promise<never>((_resolve, reject) => {
    cancel = timers.after(timeoutMs, () => reject(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })))
  })
  return { passed, clear: () => cancel?.() }
}

/** Describes an error by its codes only, because the server's message may contain the address. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
  const status = 'responseCode' in error && typeof error.responseCode === 'number' ? error.responseCode : ''
  return `${code} ${status}`.trim()
}
