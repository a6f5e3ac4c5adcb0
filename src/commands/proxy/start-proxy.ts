/**
 * The forward proxy on loopback. Two servers of HTTP: the outer one reads what programs send to the proxy, the inner one what
 * they send through tunnels. Both pass requests to their origins in one way.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { timers } from '../../core/base/timers.ts'
import type { SigningKey } from '../../people/identity/keys/sign-request.ts'
import { createLeaves } from './authority.ts'
import { createBuyer } from './buy.ts'
import type { ProxyFolder } from './folder.ts'
import { createGatewayClient } from './gateway.ts'
import { lockFolder } from './lock.ts'
import { openPurchaseBook } from './open-purchases.ts'
import { createOutgoing } from './outgoing.ts'
import { describeFailure, type PassParts, passRequest } from './pass.ts'
import { makeFolder } from './private-files.ts'
import { answerProblem, type Problem, refuseConnection } from './problem.ts'
import {
  createTargetRules,
  describeRefusal,
  readAuthority,
  readTarget,
  type Target,
  TargetRefused,
  writeOrigin,
} from './target.ts'
import { openTunnel, pipeUntouched } from './tunnel.ts'
import { isSocket, isWebSocket, passUpgrade, withoutUpgrade } from './upgrade.ts'

export interface ProxySettings {
  readonly folder: ProxyFolder
  readonly port: number
  readonly gateway: string
  readonly key: SigningKey
  readonly maxMicros: bigint
  readonly budgetMicros: bigint
  /** Hosts that are left alone; `.example.com` is a host with all below it. */
  readonly passed: readonly string[]
  readonly allowPrivate: boolean
  /** PEM of authorities to trust besides the system's. */
  readonly roots: string
  readonly report: (line: string) => void
}

export interface Proxy {
  readonly port: number
  readonly spentMicros: () => bigint
  /** Waits a moment for purchases under way. */
  close(): Promise<void>
}

const HEADERS_MS = 60_000
const IDLE_MS = 60_000
/** Longest wait for the gateway at the start. */
const LEARN_MS = 3_000
/** Pause before it is asked again. */
const RELEARN_MS = 1_000
/** Time for requests under way when the proxy ends. */
const DRAIN_MS = 5_000
const NEEDS_TOKEN = '407 Proxy Authentication Required'
const AUTHENTICATE = { 'Proxy-Authenticate': 'Basic realm="Bursar proxy"' }
const MISSING_TOKEN: Problem = {
  code: 'proxy_token_required',
  detail: 'This proxy serves the programs that have its token only.',
  hint: 'Set the variables of "bursar proxy env".',
}
const NO_TARGET: Problem = {
  code: 'invalid_request',
  detail: 'This is a forward proxy: it takes absolute http:// URLs and CONNECT.',
  hint: 'Set the variables of "bursar proxy env" instead of sending requests here.',
}

/** @throws Error if the port is taken, or another proxy of the same key is running. */
export async function startProxy(settings: ProxySettings): Promise<Proxy> {
  const { folder, gateway: origin, key, maxMicros, budgetMicros, roots, report } = settings
  const gateway = createGatewayClient(origin, key)
  // A part of the thumbprint, because paths of sockets are short.
  const keyFolder = makeFolder(folder.path, key.keyId.slice(0, 16))
  const unlock = await lockFolder(keyFolder)
  const book = openPurchaseBook(keyFolder, { maxMicros, budgetMicros, report })
  let port = 0
  let isSandbox = false
  const rules = createTargetRules({
    own: () => port,
    gateway: new URL(origin),
    allowPrivate: settings.allowPrivate,
    allowLoopback: () => isSandbox,
  })
  const outgoing = createOutgoing({ rules, roots })
  const leaves = createLeaves(folder.authority)
  const parts: PassParts = {
    outgoing,
    gateway,
    book,
    buy: createBuyer({ gateway, book, maxMicros }),
    space: { kept: 0 },
    report,
  }
  /** Targets of tunnels; the outer server's connections have none. */
  const targets = new WeakMap<object, Target>()
  const outer = createProxyServer()
  const inner = createProxyServer()
  const mayUse = createTokenCheck(folder.token)
  const active = new Set<ServerResponse>()
  const tunnels = new Set<Socket>()

  const serveRequest = (request: IncomingMessage, response: ServerResponse, located: Located | null) => {
    if (located === null) return answerProblem(response, 400, NO_TARGET)
    active.add(response)
    response.once('close', () => active.delete(response))
    void learnMode()
    // A defect of ours ends one request, and not those of all programs.
    passRequest(parts, { request, response, ...located }).catch(() => response.destroy())
  }
  /** Asked again until the gateway answers: it may start after the proxy. */
  const learnMode = createOnce(async () => {
    isSandbox = await gateway.isSandbox()
  })
  await Promise.race([learnMode(), timers.sleep(LEARN_MS, { isIdle: true })])

  outer.on('request', (request, response) => {
    if (!mayUse(request)) return answerProblem(response, 407, MISSING_TOKEN, AUTHENTICATE)
    serveRequest(request, response, locateOuter(request))
  })
  inner.on('request', (request, response) => {
    serveRequest(request, response, locateInner(request, targets.get(request.socket)))
  })
  const serve = (socket: Socket, target: Target) => {
    targets.set(socket, target)
    inner.emit('connection', socket)
  }
  outer.on('connect', (request, stream, head: Buffer) => {
    if (!isSocket(stream)) return void stream.destroy()
    if (!mayUse(request)) return refuseConnection(stream, NEEDS_TOKEN, MISSING_TOKEN, AUTHENTICATE)
    const authority = readAuthority(request.url ?? '')
    if (authority === null) return refuseConnection(stream, '400 Bad Request', NO_TARGET)
    const target = { ...authority, isSecure: false }
    void learnMode()
    const refusal = findRefusal(() => rules.judge(target))
    if (refusal !== null) return refuseConnection(stream, '403 Forbidden', refusal)
    stream.on('error', () => stream.destroy())
    tunnels.add(stream)
    stream.once('close', () => tunnels.delete(stream))
    if (head.length > 0) stream.unshift(head)
    stream.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    if (isPassed(settings.passed, target.host)) pipeUntouched(outgoing, target, stream)
    else openTunnel({ outgoing, leaves, serve }, target, stream)
  })
  const serveUpgrade = (
    server: Server,
    { request, socket, head }: { request: IncomingMessage; socket: Socket; head: Buffer },
    located: Located | null,
  ) => {
    if (located === null) return refuseConnection(socket, '400 Bad Request', NO_TARGET)
    socket.on('error', () => socket.destroy())
    if (!isWebSocket(request)) {
      socket.unshift(withoutUpgrade(request, head))
      return void server.emit('connection', socket)
    }
    tunnels.add(socket)
    socket.once('close', () => tunnels.delete(socket))
    const fail = (error: unknown) => {
      const { status, problem } = describeFailure(error)
      refuseConnection(socket, status === 403 ? '403 Forbidden' : '502 Bad Gateway', problem)
    }
    try {
      passUpgrade(outgoing, { request, ...located }, { socket, head, fail })
    } catch (error) {
      fail(error)
    }
  }
  outer.on('upgrade', (request, socket, head: Buffer) => {
    if (!isSocket(socket)) return void socket.destroy()
    if (!mayUse(request)) return refuseConnection(socket, NEEDS_TOKEN, MISSING_TOKEN, AUTHENTICATE)
    serveUpgrade(outer, { request, socket, head }, locateOuter(request))
  })
  inner.on('upgrade', (request, socket, head: Buffer) => {
    if (!isSocket(socket)) return void socket.destroy()
    serveUpgrade(inner, { request, socket, head }, locateInner(request, targets.get(socket)))
  })

  try {
    port = await listen(outer, settings.port)
  } catch (error) {
    book.stop()
    unlock()
    throw error
  }
  return {
    port,
    spentMicros: book.spentMicros,
    async close() {
      outer.close()
      const until = timers.monotonic() + DRAIN_MS
      while (active.size > 0 && timers.monotonic() < until) await timers.sleep(20)
      outer.closeAllConnections()
      for (const tunnel of tunnels) tunnel.destroy()
      outgoing.close()
      book.stop()
      unlock()
    },
  }
}

interface Located {
  readonly target: Target
  readonly path: string
  readonly isAbsolute: boolean
}

function createProxyServer(): Server {
  // Bodies and answers may take as long as their programs and origins like.
  const server = createServer({ requestTimeout: 0, headersTimeout: HEADERS_MS, keepAliveTimeout: IDLE_MS })
  // Answered here at once: the body is needed if the origin asks for a payment.
  server.on('checkContinue', (request, response) => {
    response.writeContinue()
    server.emit('request', request, response)
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  return server
}

/** Compares digests, in a time that says nothing about the token. */
function createTokenCheck(token: string): (request: IncomingMessage) => boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  const expected = digest(`Basic ${Buffer.from(`bursar:${token}`).toString('base64')}`)
  return ({ headers }) => timingSafeEqual(digest(headers['proxy-authorization'] ?? ''), expected)
}

/** Two fields of one request would name two hosts, and each reader chooses its own. */
function namesHosts({ headersDistinct }: IncomingMessage): boolean {
  return (headersDistinct.host ?? []).length > 1
}

function locateOuter(request: IncomingMessage): Located | null {
  const { url = '' } = request
  if (namesHosts(request) || !/^http:\/\/[^/?#]/i.test(url) || !URL.canParse(url)) return null
  const parsed = new URL(url)
  return { target: readTarget(parsed), path: `${parsed.pathname}${parsed.search}`, isAbsolute: true }
}

function locateInner(request: IncomingMessage, target: Target | undefined): Located | null {
  const { url = '' } = request
  if (target === undefined || namesHosts(request) || !url.startsWith('/')) return null
  return URL.canParse(`${writeOrigin(target)}${url}`) ? { target, path: url, isAbsolute: false } : null
}

function isPassed(passed: readonly string[], host: string): boolean {
  return passed.some((name) => {
    const given = name.toLowerCase()
    return given.startsWith('.') ? host === given.slice(1) || host.endsWith(given) : host === given
  })
}

function findRefusal(work: () => void): Problem | null {
  try {
    work()
    return null
  } catch (error) {
    if (!(error instanceof TargetRefused)) throw error
    return describeRefusal(error)
  }
}

/** Repeats work with each call until it has succeeded once, not more often than each second. */
function createOnce(work: () => Promise<void>): () => Promise<void> {
  let isDone = false
  let running: Promise<void> | null = null
  const nothing = Promise.resolve()
  return () => {
    if (isDone) return nothing
    running ??= work().then(
      () => {
        isDone = true
      },
      () => {
        timers.after(
          RELEARN_MS,
          () => {
            running = null
          },
          { isIdle: true },
        )
      },
    )
    return running
  }
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port) // A server on a port has an address.
    })
  })
}
