/** Starts of a new sandbox (database in memory, local chain), until it serves; the floor is Node alone. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { startGateway } from '../journeys/gateway.ts'

const STARTS = 7

/** Medians in milliseconds. @property processorMs of the gateway and its chain. */
export interface StartFigures {
  readonly wallMs: number
  readonly processorMs: number
  readonly floorMs: number
}

export async function benchStarts(): Promise<StartFigures> {
  const wall: number[] = []
  const processor: number[] = []
  const floor: number[] = []
  // The first fills the page cache.
  for (let count = 0; count <= STARTS; count += 1) {
    const startedAt = performance.now()
    const gateway = await startGateway()
    const wallMs = performance.now() - startedAt
    const processorMs = processorTime(gateway.process.pid ?? 0)
    await gateway.stop()
    const emptyAt = performance.now()
    spawnSync(process.execPath, ['--eval', '0'])
    if (count === 0) continue
    wall.push(wallMs)
    processor.push(processorMs)
    floor.push(performance.now() - emptyAt)
  }
  return { wallMs: median(wall), processorMs: median(processor), floorMs: median(floor) }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** Milliseconds of processor time of a process and its children so far. @see https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
function processorTime(pid: number): number {
  const fields = readStat(pid)
  const children = readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && readStat(Number(name))[1] === String(pid),
  )
  const own = ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond
  return children.reduce((sum, child) => sum + processorTime(Number(child)), own)
}

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** Fields from the third on; the second, the name, may contain spaces. None of a process that has ended. */
function readStat(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
  } catch {
    return []
  }
}
