/** Which process a pid means: a pid alone is used again after its process has ended, so it goes with a start time. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** A process. @property started boot and start time in the system's own words; empty where the system does not tell. */
export interface ProcessIdentity {
  readonly pid: number
  readonly started: string
}

/** This process. */
export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, started: startOf(process.pid) ?? '' }
}

/** Whether that very process is still running. In doubt it is: a live owner must never be taken for a dead one. */
export function isRunning({ pid, started }: ProcessIdentity): boolean {
  if (!answersSignals(pid)) return false
  const current = startOf(pid)
  if (current === undefined) return false
  return started === '' || current === '' || current === started
}

/** Boot and start time of a process: undefined when it has ended, empty when the system does not tell. */
function startOf(pid: number): string | undefined {
  const boot = contentOf('/proc/sys/kernel/random/boot_id')
  if (boot === undefined) return startByPs(pid)
  const stat = contentOf(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // The second field, the command in parentheses, may hold spaces and parentheses itself. Behind it: state, …, start.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state] = fields
  // A zombie has ended and only waits for its parent to notice.
  return state === 'Z' || state === 'X' ? undefined : `${boot.trim()} ${fields[19] ?? ''}`
}

function startByPs(pid: number): string {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
    }).trim()
  } catch {
    // No such program, or no such process: whether it answers signals is then all that is known.
    return ''
  }
}

function answersSignals(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Not allowed to signal it: it exists, and belongs to somebody else.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
