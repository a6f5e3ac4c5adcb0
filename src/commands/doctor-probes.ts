/** How the doctor asks others whether they are there: one connection or request, a time limit, and nothing changed. */
import { connect as connectPlain } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** What a check found. @property hint what to do; null where there is nothing to do. */
export interface Finding {
  readonly check: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly detail: string
  readonly hint: string | null
}

/** All is well. */
export const ok = (check: string, detail: string): Finding => ({ check, status: 'ok', detail, hint: null })

/** It works, and should be looked at. */
export const warn = (check: string, detail: string, hint: string): Finding => ({
  check,
  status: 'warn',
  detail,
  hint,
})

/** It does not work. */
export const fail = (check: string, detail: string, hint: string): Finding => ({
  check,
  status: 'fail',
  detail,
  hint,
})

/** Another clock, read at a moment of ours. */
export interface Moment {
  readonly of: string
  readonly theirs: Date
  readonly ours: Date
}

/** Whether a web server answers, whatever it answers. @returns its status and clock. @throws where it does not. */
export async function askWeb(
  url: string,
  signal: AbortSignal,
): Promise<{ status: number; date: Date | null; text: string }> {
  const response = await fetch(url, { signal, redirect: 'manual' })
  const date = response.headers.get('date')
  return {
    status: response.status,
    date: date === null ? null : new Date(date),
    text: (await response.text()).slice(0, 20_000),
  }
}

/** Whether a mail server greets. @returns its greeting's code, 220 where it takes mail. @throws where nobody answers. */
export function askMail(url: string, signal: AbortSignal): Promise<number> {
  const { hostname, port, protocol } = new URL(url)
  const isTls = protocol === 'smtps:'
  const at = { host: hostname, port: Number(port === '' ? (isTls ? 465 : 587) : port) }
  return new Promise((resolve, reject) => {
    const socket = isTls ? connectTls({ ...at, servername: hostname }) : connectPlain(at)
    const end = (settle: () => void) => {
      socket.destroy()
      settle()
    }
    signal.addEventListener('abort', () => end(() => reject(new Error('no greeting in time'))), {
      once: true,
    })
    socket.once('error', (error) => end(() => reject(error)))
    socket.once('data', (data) => end(() => resolve(Number(data.toString('latin1').slice(0, 3)))))
  })
}
