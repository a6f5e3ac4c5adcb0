/** Clients that people have, with nothing set but the variables of `bursar proxy env`, and as programs of `bursar run`. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { requestJson } from '../../journeys/people.ts'
import { hasAnvil } from '../../rails/selling/x402/world.ts'
import { bursar } from '../bursar.ts'
import { newBuyer, type ProxyAgent, type RunningProxy, startProgram, startTestProxy } from './scene.ts'
import { makeCertificates, PRICE, startOrigins, type TestOrigins } from './sellers.ts'

/** @returns true if a command of this machine succeeds. */
function has(command: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Another Node, such as a newer one than runs the tests. */
const node = process.env.NODE_NEXT_BIN ?? process.execPath
const nodeVersion = Number(/^v(\d+)/.exec(execFileSync(node, ['--version'], { encoding: 'utf8' }))?.[1])
const urllib = 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())'
const requests = 'import sys, requests; print(requests.get(sys.argv[1]).text)'
const nodeFetch = 'fetch(process.argv[1]).then((r) => r.text()).then(console.log)'
/** What programs on Node before 24 do; this undici is Node's own. */
const undici = `const { EnvHttpProxyAgent, setGlobalDispatcher } = require('internal/deps/undici/undici')
  setGlobalDispatcher(new EnvHttpProxyAgent())
  ${nodeFetch}`
const wget = 'exec wget -qO- --ca-certificate="$SSL_CERT_FILE" "$0"'

const clients: readonly (readonly [name: string, isHere: boolean, command: readonly string[]])[] = [
  ['curl', has('curl', '--version'), ['curl', '-sS']],
  ['curl that prefers HTTP/2', has('curl', '--version'), ['curl', '-sS', '--http2']],
  ['wget', has('wget', '--version'), ['sh', '-c', wget]],
  ['python urllib', has('python3', '--version'), ['python3', '-c', urllib]],
  ['python requests', has('python3', '-c', 'import requests'), ['python3', '-c', requests]],
  ['EnvHttpProxyAgent of undici', true, [node, '--no-warnings', '--expose-internals', '-e', undici]],
  ['fetch of Node', nodeVersion >= 24, [node, '-e', nodeFetch]],
]

describe.skipIf(!hasAnvil())('clients of the proxy', () => {
  const certificates = makeCertificates()
  let gateway: Gateway
  let origins: TestOrigins
  let proxy: RunningProxy
  let runner: ProxyAgent

  beforeAll(async () => {
    gateway = await startGateway({ NODE_EXTRA_CA_CERTS: certificates.ca })
    const { body } = await requestJson(gateway.origin, 'GET', '/sandbox/credentials')
    const { chain } = z.object({ chain: z.object({ rpcUrl: z.string() }) }).parse(body)
    origins = await startOrigins(certificates, chain.rpcUrl)
    proxy = await startTestProxy(await newBuyer(gateway.origin), gateway.origin, '--ca', certificates.ca)
    runner = await newBuyer(gateway.origin)
  }, 180_000)
  afterAll(async () => {
    await proxy?.stop()
    await origins?.close()
    await gateway?.stop()
  }, 60_000)

  const run = ([program = '', ...args]: readonly string[], env = proxy.env) =>
    startProgram(program, args, env).ended

  it.each(clients)('%s gets what is free, and buys, over HTTP and HTTPS', async (_name, isHere, command) => {
    if (!isHere) return expect(isHere).toBe(false)
    const before = await origins.received()
    for (const origin of [origins.http, origins.https]) {
      expect((await run([...command, `${origin}/free`])).out).toContain('free')
      const { out, err } = await run([...command, `${origin}/report`])
      expect([out, err]).toEqual([expect.stringContaining('"report":"sunny"'), ''])
    }
    expect((await origins.received()) - before).toBe(2n * PRICE)
  })

  it.each(clients)('%s buys as a program of `bursar run`', async (_name, isHere, command) => {
    if (!isHere) return expect(isHere).toBe(false)
    const before = await origins.received()
    const { out, err } = await bursar(
      [
        ...['run', '--url', gateway.origin, '--key', runner.keyFile, '--ca', certificates.ca],
        ...['--budget', '0.50', '--', ...command, `${origins.https}/report`],
      ],
      { HOME: runner.home },
    )
    expect([out, err]).toEqual([
      expect.stringContaining('"report":"sunny"'),
      expect.stringMatching(/spent 0\.001 of 0\.5 USD/),
    ])
    expect((await origins.received()) - before).toBe(PRICE)
  })

  /** A program whose traffic is free, as `bursar run` starts it. */
  const runFree = (command: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    bursar(
      [
        ...['run', '--url', gateway.origin, '--key', runner.keyFile, '--ca', certificates.ca],
        ...['--budget', '0.50', '--', ...command],
      ],
      { HOME: runner.home, ...env },
    )
  const unspent = expect.stringMatching(/^bursar run: spent 0 of 0\.5 USD in 0 spends\n.* is revoked\n$/)

  it('buys twice on one connection that is kept', async () => {
    const urls = [`${origins.https}/report`, `${origins.https}/report`]
    const { out } = await run(['curl', '-sS', '-w', '%{num_connects} ', ...urls])
    expect(out.match(/sunny/g)).toHaveLength(2)
    expect(out).toMatch(/[12] [\s\S]*0 $/)
  })

  it('lets git clone over HTTPS', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bursar-git-'))
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
        cwd: folder,
        stdio: 'ignore',
      })
    git('init', '-q', 'source')
    git('-C', 'source', 'commit', '-q', '--allow-empty', '-m', 'first')
    git('clone', '-q', '--bare', 'source', 'served.git')
    git('-C', 'served.git', 'update-server-info')
    const server = createServer(certificates, (request, response) => {
      const path = join(folder, new URL(request.url ?? '', 'http://x').pathname)
      if (existsSync(path)) response.end(readFileSync(path))
      else response.writeHead(404).end()
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const url = `https://localhost:${port}/served.git`
    const { code, err } = await run(['git', 'clone', '-q', url, join(folder, 'copy')])
    const again = await runFree(['git', 'clone', '-q', url, join(folder, 'again')])
    server.close()
    expect([code, err]).toEqual([0, ''])
    expect(again).toMatchObject({ code: 0, err: unspent })
    for (const copy of ['copy', 'again']) expect(existsSync(join(folder, copy, '.git/HEAD'))).toBe(true)
  })

  it('lets npm read a package over HTTPS', async () => {
    const tarball = Buffer.from('not read')
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
    const dist = { tarball: 'https://localhost/a.tgz', integrity }
    const server = createServer(certificates, (_request, response) => {
      response.setHeader('content-type', 'application/json')
      const versions = { '1.2.3': { name: 'left', version: '1.2.3', dist } }
      response.end(JSON.stringify({ name: 'left', 'dist-tags': { latest: '1.2.3' }, versions }))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const registry = `https://localhost:${(server.address() as AddressInfo).port}/`
    const cache = mkdtempSync(join(tmpdir(), 'bursar-npm-'))
    const settings = {
      npm_config_registry: registry,
      npm_config_cache: cache,
      npm_config_update_notifier: 'false',
    }
    const view = ['npm', 'view', 'left', 'version']
    const { out, err } = await run(view, { ...proxy.env, ...settings })
    const again = await runFree(view, settings)
    server.close()
    expect([out.trim(), err]).toEqual(['1.2.3', ''])
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining('1.2.3'), err: unspent })
  })
})
