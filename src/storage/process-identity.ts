/** Identifies processes by pid and start time, because pids are reused. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** @property started boot and start time as reported by the system; empty if unavailable. */
export interface ProcessIdentity {
  readonly pid: number
  readonly started: string
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, started: readStart(process.pid) ?? '' }
}

/** True if the same process is still running, or if in doubt: a live owner must never be considered dead. */
export function isRunning({ pid, started }: ProcessIdentity): boolean {
  if (!answersSignals(pid)) return false
  const current = readStart(pid)
  if (current === undefined) return false
  return started === '' || current === '' || current === started
}

/** Boot and start time of a process; undefined if it has ended, empty if unavailable. */
function readStart(pid: number): string | undefined {
  const boot = readContent('/proc/sys/kernel/random/boot_id')
  if (boot === undefined) return startByPs(pid)
  const stat = readContent(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // The second field, the command in parentheses, may contain spaces and parentheses. After it: state, …, start time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state] = fields
  // A zombie has ended and awaits its parent.
  return state === 'Z' || state === 'X' ? undefined : `${boot.trim()} ${fields[19] ?? ''}`
}

function startByPs(pid: number): string {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
    }).trim()
  } catch {
    // Without ps or the process, signals are the only evidence.
    return ''
  }
}

function answersSignals(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

function readContent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
