/** Preloaded into a gateway: its machine's clock is off by CLOCK_OFF_SECONDS. What measures durations is not. */
const offMs = Number(process.env.CLOCK_OFF_SECONDS) * 1000
const RightDate = globalThis.Date

globalThis.Date = class extends RightDate {
  constructor(...given) {
    if (given.length === 0) super(RightDate.now() + offMs)
    else super(...given)
  }
  static now() {
    return RightDate.now() + offMs
  }
}
