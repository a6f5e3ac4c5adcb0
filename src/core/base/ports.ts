/** Replaces the sources of time and randomness, one set for all modules of a process. The gateway itself never does. */
import { type Clock, installClock } from './clock.ts'
import { installRandom, type Random } from './random.ts'
import { installTimers, type Timers } from './timers.ts'

interface Ports {
  readonly timers: Timers
  readonly random: Random
  readonly clock: Clock
}

/** Installs the given ports, before anything starts. @returns a function that brings the earlier ones back. */
export function usePorts(ports: Partial<Ports>): () => void {
  const before = {
    timers: ports.timers && installTimers(ports.timers),
    random: ports.random && installRandom(ports.random),
    clock: ports.clock && installClock(ports.clock),
  }
  return () => {
    if (before.timers !== undefined) installTimers(before.timers)
    if (before.random !== undefined) installRandom(before.random)
    if (before.clock !== undefined) installClock(before.clock)
  }
}
