/** Doctor checks of vendors: one read each that needs the configured credentials and costs nothing. */
import { systemClock } from '../core/base/clock.ts'
import type { Config } from '../core/config/read-config.ts'
import { rootCause } from '../core/failures/root-cause.ts'
import { createFacilitatorHeaders } from '../rails/selling/x402/facilitator-token.ts'
import { sumsubHeaders } from '../runtime.ts'
import { type Finding, fail, ok, probeWeb, warn } from './doctor-probes.ts'

/** A vendor's cheapest read. @property headers credentials: never shown. */
interface VendorRead {
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** An address without a holder, for a reading of a screening list. */
const NOBODY = `0x${'0'.repeat(40)}`

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

const at = (url: string, path: string) => `${url.replace(/\/+$/, '')}${path}`

/** The reads of the configured vendors, in the order of the report. */
export async function vendorReads(config: Config): Promise<readonly VendorRead[]> {
  const { alpaca, sumsub, screening, twilio, cards, banking, x402 } = config
  const reads: VendorRead[] = []
  if (x402.facilitatorUrl !== null) {
    const { facilitatorUrl: url, facilitatorKey: key } = x402
    const headers = key === null ? {} : (await createFacilitatorHeaders(key, url, systemClock)()).supported
    reads.push({ name: 'facilitator', url: at(url, '/supported'), headers })
  }
  if (screening?.apiKey) {
    const headers = { 'x-api-key': screening.apiKey, accept: 'application/json' }
    reads.push({ name: 'screening', url: at(screening.url, `/api/v1/address/${NOBODY}`), headers })
  }
  if (sumsub !== null) {
    const path = '/resources/applicants/-/levels'
    const headers = sumsubHeaders(sumsub, { method: 'GET', path, body: '', at: systemClock() })
    reads.push({ name: 'identity review', url: new URL(path, sumsub.url).href, headers })
  }
  if (alpaca !== null) {
    const headers = { authorization: basic(alpaca.apiKey, alpaca.apiSecret) }
    const firm = encodeURIComponent(alpaca.firmAccountId)
    reads.push({ name: 'broker', url: at(alpaca.url, `/v1/trading/accounts/${firm}/account`), headers })
    const latest = at(alpaca.dataUrl, '/v2/stocks/trades/latest?symbols=VTI')
    reads.push({ name: 'broker’s data', url: latest, headers })
  }
  if (cards.apiKey !== null)
    reads.push({
      name: 'card processor',
      url: at(cards.url, '/v1/status'),
      headers: { authorization: cards.apiKey },
    })
  if (banking.apiKey !== null)
    reads.push({
      name: 'banking',
      url: at(banking.url, '/v0/customers?limit=1'),
      headers: { 'api-key': banking.apiKey },
    })
  if (twilio !== null) {
    const { accountSid, authToken } = twilio
    const url = at(twilio.url, `/2010-04-01/Accounts/${accountSid}.json`)
    reads.push({ name: 'SMS', url, headers: { authorization: basic(accountSid, authToken) } })
  }
  return reads
}

/** Sends one read. @param note receives the vendor's clock. */
export async function checkVendor(
  { name, url, headers }: VendorRead,
  { signal, note }: { signal: AbortSignal; note: (of: string, theirs: Date | null) => void },
): Promise<Finding> {
  const { host } = new URL(url)
  try {
    const { status, date } = await probeWeb(url, signal, headers)
    note(host, date)
    if (status >= 200 && status < 300) return ok(name, `${host} answers the configured credentials`)
    if (status === 401 || status === 403)
      return fail(
        name,
        `${host} refuses the configured credentials (${status})`,
        'Check the key and its secret, and that they belong to the environment of the URL.',
      )
    return warn(
      name,
      `${host} answered ${status}`,
      'Check its URL, its status page, and the account that the credentials belong to.',
    )
  } catch (error) {
    return fail(
      name,
      `${host}: ${rootCause(error)}`,
      'Check its URL in the configuration, and the network path (DNS, proxy, firewall).',
    )
  }
}
