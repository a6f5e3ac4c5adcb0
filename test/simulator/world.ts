/** A simulated world: gateways that crash and start again, over one database, one chain and clients' sellers, from one seed. */
import { generateKeyPairSync } from 'node:crypto'
import { type Log, silentLog } from '../../src/core/base/log.ts'
import type { PublicFetch } from '../../src/providers/public-fetch.ts'
import { loadGateway } from './load-gateway.ts'
import { type ChainFaults, Network, type Node } from './network.ts'
import { portsOf } from './ports.ts'
import { enterRealm } from './realm.ts'
import { type Owner, Scheduler } from './scheduler.ts'
import { type Seeded, seededBy } from './seeded.ts'
import { SharedDatabase } from './shared-database.ts'

/** Pauses of jobs are longer: nine tenths of all steps would be their empty rounds. */
const JOB_FACTOR = 10
const RESTART_MS = 1_000
const GATEWAYS_AT_MOST = 10
/** A node that does not answer fails a few; more are a defect, or a build that is missing. */
const MAX_FAILED_STARTS = 40

export const HOME = 'base-sepolia'
export const AWAY = 'arbitrum-sepolia'

/** Where clients reach the gateways: all share this origin, as behind a balancer. */
const ORIGIN = 'http://gateway.test'

export interface Gateway {
  readonly index: number
  readonly owner: Owner
  readonly inflight: Set<() => void>
  /** Undefined until it listens. */
  fetch: ((request: Request) => Response | Promise<Response>) | undefined
  /** Its private listeners, by port. */
  readonly privately: Map<number, (request: Request) => Response | Promise<Response>>
  dataKey: Uint8Array | undefined
}

/** @property body an empty object where it is no JSON. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Record<string, unknown>
}

export interface WorldOptions {
  readonly seed: number
  readonly bundle: string
  readonly functions: readonly string[]
  readonly gateways: number
  readonly log?: Log
}

interface Bell {
  readonly owner: Owner
  readonly onRing: () => void
}

export class World {
  readonly driver: Owner = { name: 'world', skew: 0, isDead: false }
  readonly scheduler: Scheduler
  readonly random: Seeded
  readonly gateways: Gateway[] = []
  crashes = 0
  /** Errors that no gateway expected: defects, whatever came of them. */
  readonly defects: string[] = []
  /** The network of strangers: sellers and webhook receivers. */
  answerStranger: (owner: Owner, ...request: Parameters<PublicFetch>) => ReturnType<PublicFetch> = () =>
    Promise.reject(new Error('no stranger listens'))
  database!: SharedDatabase
  /** The chain where everybody begins, and the one that money goes to from there. */
  network!: Network
  away!: Network
  readonly #options: WorldOptions
  readonly #bells = new Set<Bell>()
  /** Errors of starts since the last that succeeded. */
  readonly #failedStarts: unknown[] = []
  #births = 0

  private constructor(options: WorldOptions) {
    this.#options = options
    this.scheduler = new Scheduler(options.seed, this.driver)
    this.random = seededBy(`faults ${options.seed}`)
  }

  static async open(options: WorldOptions): Promise<World> {
    const world = new World(options)
    const { scheduler, random, driver } = world
    enterRealm({ scheduler, fetch: (input, init) => world.#fetchOwn(input, init) })
    const parts = { scheduler, random, world: driver }
    world.database = await SharedDatabase.open(options.functions, parts)
    world.network = await Network.open({ ...parts, name: HOME })
    world.away = await Network.open({ ...parts, name: AWAY })
    for (let index = 0; index < options.gateways; index += 1) world.start(index)
    return world
  }

  async close(): Promise<void> {
    for (const { owner } of this.gateways) owner.isDead = true
    await this.database.close()
  }

  pause(ms: number): Promise<void> {
    return this.scheduler.sleep(this.driver, ms, 'client')
  }

  get networks(): readonly [Network, Network] {
    return [this.network, this.away]
  }

  set faults(faults: ChainFaults) {
    for (const network of this.networks) network.faults = faults
  }

  get seed(): number {
    return this.#options.seed
  }

  get running(): readonly Gateway[] {
    return this.gateways.filter(({ fetch }) => fetch !== undefined)
  }

  /** @throws Error of the last start when none succeeds. */
  async allRun(): Promise<void> {
    while (this.running.length < this.#options.gateways) {
      if (this.#failedStarts.length > MAX_FAILED_STARTS) throw this.#failedStarts.at(-1)
      await this.pause(200)
    }
  }

  /** Starts the gateway of an index, with memory of its own. It tries again until it runs. */
  start(index: number): void {
    this.#births += 1
    const skew = this.gateways[index]?.owner.skew ?? 0
    const owner: Owner = { name: `g${index}.${this.#births}`, skew, isDead: false }
    const gateway: Gateway = {
      index,
      owner,
      inflight: new Set(),
      fetch: undefined,
      privately: new Map(),
      dataKey: undefined,
    }
    this.gateways[index] = gateway
    this.scheduler.schedule(owner, 'start', () => {
      this.#run(gateway).catch((error: unknown) => {
        this.#failedStarts.push(error)
        this.#options.log?.error({ err: error, gateway: owner.name }, 'a gateway did not start')
        this.scheduler.after(this.driver, RESTART_MS, 'restart', () => {
          if (owner.isDead) return
          void this.kill(gateway).then(() => this.start(index))
        })
      })
    })
  }

  async #run(gateway: Gateway): Promise<void> {
    const { owner, index } = gateway
    const { scheduler } = this
    const graph = await scheduler.track(loadGateway(this.#options.bundle))
    graph.usePorts(portsOf(scheduler, owner, rsaKey))
    const view = (network: Network) => {
      const node: Node = { owner, graph, hasReplaced: false }
      network.nodes.add(node)
      return network.view(node)
    }
    const [home, away] = [view(this.network), view(this.away)]
    const config = graph.readConfig(environment, graph.settingsErrors)
    const log = this.#watch(this.#options.log ?? silentLog)
    const runtime = await graph.createRuntime(config, {
      origin: ORIGIN,
      ownOrigin: () => `http://127.0.0.1:${8_001 + index}`,
      tools: graph.tools,
      log,
      outside: {
        openDatabase: async () => graph.databaseOnPool('postgres', this.database.poolOf(owner)),
        startChains: async () => ({ started: [home, away], late: [] }),
        openDoorbell: async (_config, { onRing }) => this.#hangBell({ owner, onRing }),
        fetchPublic: (request) => this.answerStranger(owner, request),
      },
    })
    const opened = await graph.openGateway(runtime, config, {
      tools: graph.tools,
      mcpHandler: graph.mcpHandler,
      isDraining: () => false,
      jobFactor: JOB_FACTOR,
      listen: async (app) => {
        const port = 9_001 + index + GATEWAYS_AT_MOST * gateway.privately.size
        gateway.privately.set(port, (request) => app.fetch(request))
        return { port, close: async () => {} }
      },
    })
    this.#failedStarts.length = 0
    gateway.dataKey = runtime.services.settings.dataKey
    gateway.fetch = (request) => opened.fetch(request, {})
  }

  #watch(log: Log): Log {
    return {
      ...log,
      error: (facts, message) => {
        const { err } = facts as { err?: unknown }
        if (message === 'unexpected error')
          this.defects.push(err instanceof Error ? `${err.stack}` : `${err}`)
        log.error(facts, message)
      },
    }
  }

  /** Ends a gateway between two steps: its memory, timers, calls and open transaction are gone. */
  async kill(gateway: Gateway): Promise<void> {
    const { owner, inflight } = gateway
    owner.isDead = true
    gateway.fetch = undefined
    this.crashes += 1
    for (const bell of this.#bells) if (bell.owner === owner) this.#bells.delete(bell)
    for (const { nodes } of this.networks)
      for (const node of nodes) if (node.owner === owner) nodes.delete(node)
    this.scheduler.drop(owner)
    await this.scheduler.track(this.database.drop(owner))
    for (const lose of inflight) lose()
  }

  /** A request by a client that never fails itself. @throws Error when the connection is refused or lost. */
  request(
    gateway: Gateway,
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    const { scheduler, driver } = this
    return new Promise((resolve, reject) => {
      const lose = () => scheduler.schedule(driver, 'lost', () => reject(new Error('connection lost')))
      const { fetch } = gateway
      if (fetch === undefined) {
        lose()
        return
      }
      gateway.inflight.add(lose)
      const work = async () => {
        const request = new Request(`${ORIGIN}${path}`, {
          method,
          headers: {
            host: new URL(ORIGIN).host,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...headers,
          },
          ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        })
        const response = await fetch(request)
        const text = await response.text()
        gateway.inflight.delete(lose)
        const isJson = /json/.test(response.headers.get('content-type') ?? '')
        const answer = {
          status: response.status,
          headers: response.headers,
          text,
          body: isJson && text !== '' ? JSON.parse(text) : {},
        }
        scheduler.schedule(driver, `answer ${response.status}`, () => resolve(answer))
      }
      scheduler.schedule(
        gateway.owner,
        `${method} ${path.split('?')[0]?.replace(/_[0-9a-z]{26}/, '_')}`,
        () => {
          work().catch(reject)
        },
      )
    })
  }

  #hangBell(bell: Bell) {
    this.#bells.add(bell)
    return {
      ring: () => {
        for (const other of this.#bells)
          if (other !== bell) this.scheduler.schedule(other.owner, 'bell', other.onRing)
      },
      close: async () => void this.#bells.delete(bell),
    }
  }

  /** Gateways reach themselves: the sandbox's providers, and the private listener. */
  async #fetchOwn(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const url = new URL(input instanceof Request ? input.url : input)
    const owner = this.scheduler.current
    const port = Number(url.port)
    const answer = this.gateways[(port - 9_001) % GATEWAYS_AT_MOST]?.privately.get(port)
    if (answer !== undefined) {
      const request = input instanceof Request ? input : new Request(url, { ...init, signal: null })
      return this.scheduler.port(owner, 'private', async () => answer(request))
    }
    const gateway = this.gateways[port - 8_001]
    if (gateway === undefined) throw new TypeError('fetch failed')
    const asked = await this.request(gateway, init.method ?? 'GET', `${url.pathname}${url.search}`, {
      ...(init.body === undefined || init.body === null ? {} : { body: String(init.body) }),
      headers: Object.fromEntries(new Headers(init.headers)),
    }).catch((cause: unknown) => {
      throw new TypeError('fetch failed', { cause })
    })
    return new Promise((resolve) => {
      this.scheduler.schedule(owner, 'fetched', () =>
        resolve(
          new Response(asked.text === '' ? null : asked.text, {
            status: asked.status,
            headers: asked.headers,
          }),
        ),
      )
    })
  }
}

/** No step depends on which it is. */
const rsaKey = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey

const limits = [
  ...['MUTATIONS', 'GASLESS', 'FX', 'FUNDING', 'ACCOUNT', 'KEY', 'SPONSORED', 'GUESTS', 'AUTHORIZATIONS'],
  ...['REVEALS', 'MESSAGES', 'STOPS', 'OTP_RESEND', 'OTP_DESTINATION', 'OTP_IP'],
]
const environment: Readonly<Record<string, string>> = {
  CHAIN: 'simulated',
  CHAINS: `${HOME},${AWAY}`,
  DATA_DIR: 'memory',
  PUBLIC_ORIGIN: ORIGIN,
  LOG_LEVEL: 'silent',
  // Within the longest rest.
  CHANNEL_IDLE_SECONDS: '600',
  ...Object.fromEntries(limits.map((name) => [`RATE_${name}`, '1000000/60'])),
}
