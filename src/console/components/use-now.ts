/** The moment, for countdowns. */
import { useEffect, useState } from 'preact/hooks'
import { now as readNow } from '../data/clock.ts'

/** Now, renewed every second while something is counted down. */
export function useNow(isCounting: boolean): Date {
  const [now, set] = useState(readNow)
  useEffect(() => {
    if (!isCounting) return
    const timer = setInterval(() => set(readNow()), 1_000)
    return () => clearInterval(timer)
  }, [isCounting])
  return now
}
