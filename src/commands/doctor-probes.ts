/** Network probes of the doctor: one connection or request each, with a time limit and no side effects. */
import { connect as connectPlain } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** @property hint remedy, or null. */
export interface Finding {
  readonly check: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly detail: string
  readonly hint: string | null
}

export const ok = (check: string, detail: string): Finding => ({ check, status: 'ok', detail, hint: null })

export const warn = (check: string, detail: string, hint: string): Finding => ({
  check,
  status: 'warn',
  detail,
  hint,
})

export const fail = (check: string, detail: string, hint: string): Finding => ({
  check,
  status: 'fail',
  detail,
  hint,
})

/** A reading of another clock, with our time. */
export interface Moment {
  readonly of: string
  readonly theirs: Date
  readonly ours: Date
}

/**
 * Sends a GET; any response counts. @param headers credentials, which a redirect does not get.
 * @returns its status and clock. @throws when the server does not respond.
 */
export async function probeWeb(
  url: string,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; date: Date | null; text: string }> {
  const response = await fetch(url, { signal, redirect: 'manual', headers })
  const date = response.headers.get('date')
  return {
    status: response.status,
    date: date === null ? null : new Date(date),
    text: (await response.text()).slice(0, 20_000),
  }
}

/** Reads a mail server's greeting. @returns its code; 220 means ready. @throws when the server does not respond. */
export function probeMail(url: string, signal: AbortSignal): Promise<number> {
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
