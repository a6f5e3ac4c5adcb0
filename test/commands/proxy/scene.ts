/** A proxy as its user starts it, with an agent's key at a gateway, and programs that know nothing of payments. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TLSSocket, connect as tlsConnect } from 'node:tls'
import { z } from 'zod'
import { newGuest, type Person } from '../../journeys/people.ts'
import { bursar } from '../bursar.ts'

export interface ProxyAgent {
  readonly owner: Person
  readonly keyFile: string
  readonly agentId: string
  /** Home folder of the user. */
  readonly home: string
}

/** Registers an agent that may buy. */
export async function newBuyer(origin: string, policy: object = {}): Promise<ProxyAgent> {
  const home = mkdtempSync(join(tmpdir(), 'bursar-proxy-'))
  const keyFile = join(home, 'agent.json')
  await bursar(['agent', 'new', '--name', 'Buyer', '--out', keyFile], { HOME: home })
  const { publicKey } = z.object({ publicKey: z.unknown() }).parse(JSON.parse(readFileSync(keyFile, 'utf8')))
  const owner = await newGuest(origin)
  const { status, body } = await owner.send('POST', '/api/agents/keys', {
    name: 'Buyer',
    publicKey,
    scopes: ['purchases:pay', 'wallets:read', 'agents:delegate'],
    policy: {
      perTransaction: { max: '1' },
      dailyBudget: { max: '5' },
      categories: { allow: ['x402'] },
      ...policy,
    },
  })
  if (status !== 200) throw new Error(`the key was not registered: ${JSON.stringify(body)}`)
  return { owner, keyFile, agentId: String(body.agentId), home }
}

export interface RunningProxy {
  readonly process: ChildProcess
  readonly port: number
  readonly token: string
  /** The variables of `bursar proxy env`. */
  readonly env: Readonly<Record<string, string>>
  readonly output: () => string
  stop(): Promise<number | null>
  kill(): Promise<void>
}

/** @param env variables of the user's shell. */
export async function startTestProxy(
  {
    keyFile,
    home,
    env: shell = {},
  }: Pick<ProxyAgent, 'keyFile' | 'home'> & { readonly env?: Readonly<Record<string, string>> },
  gateway: string,
  ...options: readonly string[]
): Promise<RunningProxy> {
  const child = spawn(
    process.execPath,
    ['.build/bin/main.js', 'proxy', '--key', keyFile, '--url', gateway, '--port', '0', ...options],
    { env: { PATH: process.env.PATH ?? '', HOME: home, ...shell }, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let output = ''
  const exited = once(child, 'exit')
  const port = await new Promise<number>((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text
      const found = /Proxy on 127\.0\.0\.1:(\d+)/.exec(output)?.[1]
      if (found !== undefined) resolve(Number(found))
    })
    void exited.then(() => reject(new Error(`The proxy ended:\n${output}`)))
  })
  const { out } = await bursar(['proxy', 'env'], { HOME: home })
  const env = Object.fromEntries(
    [...out.matchAll(/^export (\w+)='(.*)'$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
  const token = new URL(env.HTTP_PROXY ?? '').password
  return {
    process: child,
    port,
    token,
    env,
    output: () => output,
    stop: async () => {
      child.kill('SIGTERM')
      await exited
      return child.exitCode
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

export interface ProgramResult {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Starts a program with nothing but the proxy's variables. */
export function startProgram(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): { readonly process: ChildProcess; readonly ended: Promise<ProgramResult> } {
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH ?? '', HOME: tmpdir(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => {
    output.out += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    output.err += chunk.toString()
  })
  const ended = new Promise<ProgramResult>((resolve) => {
    child.once('error', (error) => resolve({ code: null, out: '', err: String(error) }))
    child.once('close', (code) => resolve({ code, ...output }))
  })
  return { process: child, ended }
}

export const curl = (env: Readonly<Record<string, string>>, ...args: readonly string[]) =>
  startProgram('curl', ['-sS', ...args], env).ended

interface ProxyAddress {
  readonly port: number
  readonly token: string
}

/** Opens a tunnel by CONNECT. */
export function openTunnel({ port, token }: ProxyAddress, authority: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      port,
      host: '127.0.0.1',
      method: 'CONNECT',
      path: authority,
      headers: { 'proxy-authorization': `Basic ${Buffer.from(`bursar:${token}`).toString('base64')}` },
    })
    request.once('connect', (answer, socket) =>
      answer.statusCode === 200 ? resolve(socket) : reject(new Error(`CONNECT: ${answer.statusCode}`)),
    )
    request.once('error', reject)
    request.end()
  })
}

/** Opens TLS inside a tunnel. */
export async function openSecure(proxy: ProxyAddress, authority: string, ca: string): Promise<TLSSocket> {
  const socket = await openTunnel(proxy, authority)
  const secure = tlsConnect({ socket, servername: 'localhost', ca: readFileSync(ca) })
  await once(secure, 'secureConnect')
  return secure
}

/** GET of an absolute http URL by the proxy, or within a TLS tunnel. */
export async function get(
  proxy: ProxyAddress & { readonly env: Readonly<Record<string, string>> },
  url: string,
): Promise<IncomingMessage> {
  const { protocol, host, pathname, search } = new URL(url)
  const isSecure = protocol === 'https:'
  const socket = isSecure ? await openSecure(proxy, host, proxy.env.NODE_EXTRA_CA_CERTS ?? '') : null
  const request = httpRequest({
    ...(socket === null ? { host: '127.0.0.1', port: proxy.port } : { createConnection: () => socket }),
    path: isSecure ? `${pathname}${search}` : url,
    headers: {
      host,
      ...(isSecure
        ? {}
        : { 'proxy-authorization': `Basic ${Buffer.from(`bursar:${proxy.token}`).toString('base64')}` }),
    },
  })
  request.end()
  const [answer] = await once(request, 'response')
  return answer
}
