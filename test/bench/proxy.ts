/**
 * The forward proxy on free traffic: what it adds to a request on a connection that is kept, and its memory under 50 streams of
 * 50 MB. Direct and proxied requests take turns, so that both are measured on the same machine load. Run with
 * `npx tsx test/bench/proxy.ts`; lines to meet: p50 of 1 ms over HTTP and 3 ms over HTTPS, 80 MB.
 */
import { readFileSync } from 'node:fs'
import { Agent, type AgentOptions, get as httpGet, type IncomingMessage } from 'node:http'
import { get as httpsGet, type RequestOptions, Agent as SecureAgent } from 'node:https'
import { type Duplex, PassThrough } from 'node:stream'
import { newBuyer, openSecure, startTestProxy } from '../commands/proxy/scene.ts'
import { makeCertificates, startOrigins } from '../commands/proxy/sellers.ts'
import { startGateway } from '../journeys/gateway.ts'

const REQUESTS = 1_500
const WARM_UP = 200
const STREAMS = 50

const certificates = makeCertificates()
const gateway = await startGateway()
const origins = await startOrigins(certificates, null)
const proxy = await startTestProxy(await newBuyer(gateway.origin), gateway.origin, '--ca', certificates.ca)

const { host } = new URL(origins.https)
const ownCa = proxy.env.NODE_EXTRA_CA_CERTS ?? ''
const kept: AgentOptions = { keepAlive: true, maxSockets: STREAMS }
const authorization = `Basic ${Buffer.from(`bursar:${proxy.token}`).toString('base64')}`
/** Reaches an HTTPS origin through tunnels. */
class TunnelAgent extends SecureAgent {
  override createConnection(
    _options: RequestOptions,
    done: (error: Error | null, socket: Duplex) => void = () => undefined,
  ): null {
    openSecure(proxy, host, ownCa).then(
      (socket) => done(null, socket),
      (error: Error) => done(error, new PassThrough()),
    )
    return null
  }
}
const agents = {
  plain: new Agent(kept),
  proxied: new Agent(kept),
  secure: new SecureAgent({ ...kept, ca: readFileSync(certificates.ca) }),
  tunnel: new TunnelAgent({ ...kept, ca: readFileSync(ownCa) }),
}
type Way = keyof typeof agents

function ask(way: Way, path: string): Promise<IncomingMessage> {
  const agent = agents[way]
  return new Promise((resolve, reject) => {
    const request =
      way === 'plain'
        ? httpGet(`${origins.http}${path}`, { agent }, resolve)
        : way === 'proxied'
          ? httpGet(
              {
                ...{ agent, host: '127.0.0.1', port: proxy.port, path: `${origins.http}${path}` },
                headers: { 'proxy-authorization': authorization },
              },
              resolve,
            )
          : httpsGet(`${origins.https}${path}`, { agent }, resolve)
    request.once('error', reject)
  })
}

async function drain(answer: IncomingMessage): Promise<void> {
  for await (const _ of answer);
}

const times: Record<Way, number[]> = { plain: [], proxied: [], secure: [], tunnel: [] }
const ways = ['plain', 'proxied', 'secure', 'tunnel'] as const
for (let turn = -WARM_UP; turn < REQUESTS; turn += 1)
  for (const way of ways) {
    const start = performance.now()
    await drain(await ask(way, '/free'))
    if (turn >= 0) times[way].push(performance.now() - start)
  }

const quantile = (way: Way, part: number) =>
  times[way].toSorted((one, other) => one - other)[Math.floor(times[way].length * part)] ?? 0
const write = (line: string) => process.stdout.write(`${line}\n`)
for (const [direct, proxied, name, most] of [
  ['plain', 'proxied', 'http ', 1],
  ['secure', 'tunnel', 'https', 3],
] as const) {
  const added = (part: number) => (quantile(proxied, part) - quantile(direct, part)).toFixed(2)
  write(
    `${name} direct p50 ${quantile(direct, 0.5).toFixed(2)} p99 ${quantile(direct, 0.99).toFixed(2)} ms; added p50 ${added(0.5)} (at most ${most}) p99 ${added(0.99)} ms`,
  )
}

const readStatus = (field: string) =>
  Math.round(
    Number(
      new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${proxy.process.pid}/status`, 'utf8'))?.[1],
    ) / 1_000,
  )
write(
  `RSS after ${2 * (REQUESTS + WARM_UP)} requests ${readStatus('VmRSS')} MB, peak ${readStatus('VmHWM')} MB`,
)
for (const way of ['proxied', 'tunnel'] as const) {
  let peak = 0
  const sampling = setInterval(() => {
    peak = Math.max(peak, readStatus('VmRSS'))
  }, 20)
  const start = performance.now()
  await Promise.all(Array.from({ length: STREAMS }, async () => drain(await ask(way, '/big'))))
  clearInterval(sampling)
  const seconds = (performance.now() - start) / 1_000
  write(
    `${STREAMS} streams of 50 MB over ${way === 'tunnel' ? 'https' : 'http '}: peak RSS ${peak} MB (at most 80), ${Math.round((STREAMS * 50) / seconds)} MB/s`,
  )
}
await proxy.stop()
await origins.close()
await gateway.stop()
process.exit(0)
