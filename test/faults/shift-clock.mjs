/**
 * Preloaded into a gateway: its machine's clock is off by CLOCK_OFF_SECONDS, or by what the file CLOCK_OFF_FILE says at the
 * moment. Durations are measured right, unless the file says how far the clock has moved on.
 */
import { readFileSync } from 'node:fs'

const { CLOCK_OFF_FILE: file, CLOCK_OFF_SECONDS: seconds } = process.env
const offMs = () => Number(file === undefined ? seconds : readFileSync(file, 'utf8')) * 1000
const RightDate = globalThis.Date

globalThis.Date = class extends RightDate {
  constructor(...given) {
    if (given.length === 0) super(RightDate.now() + offMs())
    else super(...given)
  }
  static now() {
    return RightDate.now() + offMs()
  }
}

if (file !== undefined) {
  const rightNow = performance.now.bind(performance)
  performance.now = () => rightNow() + offMs()
}
