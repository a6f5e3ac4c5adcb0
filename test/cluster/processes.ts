/** Processes of a node: each is started, killed and started again by its name, and writes to a log of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram } from './programs.ts'

interface Program {
  readonly command: readonly [string, ...string[]]
  readonly env?: Readonly<Record<string, string>>
}

export interface Processes {
  start(name: string, program: Program): void
  /** Starts a killed process with the command of its first start. */
  restart(name: string): void
  isRunning(name: string): boolean
  pid(name: string): number
  /** Sends SIGKILL and waits until it is gone. */
  kill(name: string): Promise<void>
  readLog(name: string): string
  /** Kills all that still run. */
  close(): Promise<void>
}

/** @param folder where each process has its log. */
export function openProcesses(folder: string): Processes {
  const programs = new Map<string, Program>()
  const running = new Map<string, ChildProcess>()
  const logOf = (name: string) => join(folder, `${name}.log`)
  const isRunning = (name: string) => {
    const child = running.get(name)
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }
  const start = (name: string, program: Program) => {
    programs.set(name, program)
    const log = openSync(logOf(name), 'a')
    const [first, ...rest] = program.command
    const child = spawn(findProgram(first) ?? first, rest, {
      stdio: ['ignore', log, log],
      cwd: '/',
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', ...program.env },
    })
    child.on('error', () => {})
    running.set(name, child)
  }
  const kill = async (name: string) => {
    const child = running.get(name)
    if (child === undefined || !isRunning(name)) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  return {
    start,
    restart: (name) => {
      const program = programs.get(name)
      if (program === undefined) throw new Error(`${name} was never started`)
      start(name, program)
    },
    isRunning,
    pid: (name) => running.get(name)?.pid ?? -1,
    kill,
    readLog: (name) => readFileSync(logOf(name), 'utf8'),
    close: async () => {
      await Promise.all([...running.keys()].map(kill))
    },
  }
}
