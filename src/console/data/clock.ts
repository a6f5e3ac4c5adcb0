/** The gateway's time. The clock of this device may be off by hours, and deadlines are the gateway's. */

let offsetMs = 0

/** The header has whole seconds, and the answer took a while. */
const TOLERANCE_MS = 5_000

/** Fetches, and learns the gateway's time from the answer. */
export async function fetchAndSetClock(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request)
  const at = Date.parse(response.headers.get('date') ?? '')
  if (!Number.isNaN(at)) {
    const difference = at - Date.now()
    offsetMs = Math.abs(difference) > TOLERANCE_MS ? difference : 0
  }
  return response
}

/** Now, by the gateway's clock. */
export function now(): Date {
  return new Date(Date.now() + offsetMs)
}
