/**
 * Preloaded into a gateway: its machine's clock is off by CLOCK_OFF_SECONDS, or by what the file CLOCK_OFF_FILE says at the
 * moment. Durations are measured right, unless the file says how far the clock has moved on: then it has for the database's
 * server too, whose time the gateway reads now and then.
 */
import { readFileSync } from 'node:fs'
import pg from 'pg'

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

  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function (asked, ...rest) {
    const answer = query.call(this, asked, ...rest)
    if (asked?.name !== 'shared_clock') return answer
    return answer.then((result) => {
      for (const row of result.rows) row.now = new RightDate(row.now.getTime() + offMs())
      return result
    })
  }
}
