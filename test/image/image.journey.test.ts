/** The image starts, pays once and serves the console; so does the package, as npm installs it. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { requestJson } from '../journeys/people.ts'
import { closedPort } from '../smtp.ts'
import { canCarryOut, carryOut, type Image, readStages } from './dockerfile.ts'

const START_MS = 60_000

/** Waits for the banner. @throws Error with the output of a process that ends. */
async function readOrigin(child: ReturnType<typeof spawn>): Promise<{ origin: string; demoApiKey: string }> {
  let output = ''
  const exited = once(child, 'exit')
  return new Promise((found, reject) => {
    const timer = setTimeout(() => reject(new Error(`It did not start in time:\n${output}`)), START_MS)
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text
        const origin = /is up at (\S+)/.exec(output)?.[1]
        const demoApiKey = /Demo API key\s+(\S+)/.exec(output)?.[1]
        if (origin === undefined || demoApiKey === undefined) return
        clearTimeout(timer)
        found({ origin, demoApiKey })
      })
    void exited.then(() => {
      clearTimeout(timer)
      reject(new Error(`It ended:\n${output}`))
    })
  })
}

async function expectServed({ origin, demoApiKey }: { origin: string; demoApiKey: string }): Promise<void> {
  expect((await fetch(`${origin}/readyz`)).status).toBe(200)
  const paid = await requestJson(origin, 'POST', '/api/wallets/transfer', {
    headers: { authorization: `Bearer ${demoApiKey}`, 'idempotency-key': 'once' },
    body: {
      destination: '0x000000000000000000000000000000000000dEaD',
      amount: '1.25',
      signature: 'sandbox',
    },
  })
  expect(paid).toMatchObject({ status: 200, body: { status: 'confirmed' } })

  // Pages belong to a name, not to an address.
  const web = origin.replace('127.0.0.1', 'localhost')
  const guest = await fetch(`${web}/api/auth/guest`, { method: 'POST' })
  const [cookie = ''] = guest.headers.getSetCookie()
  const browser = { accept: 'text/html', cookie: cookie.split(';')[0] ?? '' }
  const page = async (path: string) => {
    const answer = await fetch(`${web}${path}`, { headers: browser })
    return { status: answer.status, text: await answer.text() }
  }
  const pages = await Promise.all(['/', '/sign-in', '/docs', '/docs/operations'].map(page))
  expect(pages.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const assets = pages.flatMap(({ text }) => [...text.matchAll(/\/assets\/[\w.-]+/g)].map(([path]) => path))
  expect(assets).toContain('/assets/main.js')
  for (const asset of new Set(assets)) expect([asset, (await page(asset)).status]).toEqual([asset, 200])
}

/** @see https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json */
const input = z.strictObject({
  description: z.string().optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  format: z.enum(['string', 'number', 'boolean', 'filepath']).optional(),
  value: z.string().optional(),
  default: z.string().optional(),
  placeholder: z.string().optional(),
})
const registryServer = z.strictObject({
  $schema: z.literal('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'),
  name: z
    .string()
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
    .min(3)
    .max(200),
  title: z.string().min(1).max(100),
  description: z.string().min(1).max(100),
  version: z.string().regex(/^\d+\.\d+\.\d+$/),
  packages: z.array(
    z.strictObject({
      registryType: z.literal('npm'),
      identifier: z.literal('bursar'),
      version: z.string().regex(/^\d+\.\d+\.\d+$/),
      runtimeHint: z.literal('npx'),
      packageArguments: z.array(
        z.discriminatedUnion('type', [
          z.strictObject({ type: z.literal('positional'), value: z.string() }),
          input.extend({ type: z.literal('named'), name: z.string().startsWith('--') }),
        ]),
      ),
      environmentVariables: z.array(input.extend({ name: z.string() })).optional(),
      transport: z.strictObject({
        type: z.enum(['stdio', 'streamable-http']),
        url: z
          .string()
          .regex(/^https?:\/\/[^\s]+$/)
          .optional(),
        headers: z.array(input.extend({ name: z.string() })).optional(),
      }),
    }),
  ),
})

const [build, final] = readStages('Dockerfile')

describe.skipIf(!canCarryOut())('the image of the Dockerfile', () => {
  let image: Image
  beforeAll(() => {
    // This checkout is the stage that builds: it was installed and built by the same commands.
    execFileSync('npm', ['run', '--silent', 'package'])
    execFileSync('sh', ['-c', 'cp .cache/*-sepolia-*.json .build/package/.cache/'])
    if (final !== undefined)
      image = carryOut(final, { context: '.', built: new Map([['build', resolve('.')]]) })
  })
  afterAll(() => image?.remove())

  it('is built by the commands that installed and built this checkout', () => {
    const commands = build?.instructions.filter(({ name }) => name === 'RUN').map(({ text }) => text)
    expect(commands?.join('\n')).toMatch(/^npm ci .*\nnpm run build && npm run package/)
  })

  it('starts as a user without rights, pays, and serves every page', async () => {
    const port = String(await closedPort())
    const child = image.start({ PORT: port, NO_COLOR: '1', LOG_LEVEL: 'warn' })
    try {
      await expectServed(await readOrigin(child))
      expect(readFileSync(`/proc/${child.pid}/status`, 'utf8')).toMatch(/^Uid:\s+1000\s+1000/m)
      expect(readFileSync(`/proc/${child.pid}/mountinfo`, 'utf8')).toMatch(/^\S+ \S+ \S+ \S+ \/ ro\b/m)
      expect(image.run(['env', `PORT=${port}`, ...image.healthCheck])).toBe('')
    } finally {
      child.kill('SIGTERM')
    }
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
  })

  it('adds less than 180 MB to its base', () => {
    const [kilobytes = ''] = image.run(['du', '-sk', '/bursar']).split('\t')
    process.stdout.write(`the image adds ${Math.round(Number(kilobytes) / 1024)} MB to its base\n`)
    expect(Number(kilobytes) / 1024).toBeLessThan(180)
  })

  it('has no file that this user cannot read', () => {
    expect(image.run(['find', '.', '!', '-readable', '-prune'])).toBe('')
  })
})

describe('the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-package-'))
  const installed = join(folder, 'node_modules/bursar')
  beforeAll(() => {
    const told = execFileSync('npm', ['run', '--silent', 'package'], { encoding: 'utf8' })
    const tarball = /^(\S+\.tgz), \d+ MB unpacked$/m.exec(told)?.[1] ?? ''
    writeFileSync(join(folder, 'package.json'), '{ "private": true }')
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', resolve(tarball)], {
      cwd: folder,
      stdio: 'ignore',
    })
  }, 400_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('installs what the bundle left outside, and names what it holds', () => {
    const { dependencies } = z
      .object({ dependencies: z.record(z.string(), z.string()) })
      .parse(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')))
    for (const name of ['viem', 'hono', 'x402-hono', 'pdfkit', '@electric-sql/pglite'])
      expect(dependencies[name]).toBeUndefined()
    const notices = readFileSync(join(installed, 'THIRD-PARTY.txt'), 'utf8')
    for (const name of [
      'viem',
      'hono',
      'jose',
      'preact',
      'web-push',
      '@electric-sql/pglite',
      'pdfkit',
      'fontkit',
    ])
      expect(notices).toMatch(new RegExp(`^${name} \\d`, 'm'))
    expect(notices).not.toMatch(/GPL-3\.0|UNLICENSED/)
    const [kilobytes = ''] = execFileSync('du', ['-sk', 'node_modules'], {
      cwd: folder,
      encoding: 'utf8',
    }).split('\t')
    process.stdout.write(`the package installs ${Math.round(Number(kilobytes) / 1024)} MB\n`)
    expect(Number(kilobytes) / 1024).toBeLessThan(150)
  })

  it('says in server.json how clients run it, as MCP’s registry asks', () => {
    const server = JSON.parse(readFileSync(join(installed, 'server.json'), 'utf8'))
    const { version, mcpName } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
    expect(registryServer.parse(server)).toEqual(server)
    expect(server).toMatchObject({ name: mcpName, version })
    for (const { environmentVariables = [], transport } of registryServer.parse(server).packages)
      for (const [, variable] of transport.url?.matchAll(/\{(\w+)\}/g) ?? [])
        expect(environmentVariables.map(({ name }) => name)).toContain(variable)
  })

  it('names every package that it holds or installs in its bill of materials', () => {
    const { bomFormat, components, metadata } = z
      .looseObject({
        bomFormat: z.string(),
        components: z.array(z.looseObject({ name: z.string(), version: z.string(), purl: z.string() })),
        metadata: z.looseObject({ component: z.looseObject({ name: z.string() }) }),
      })
      .parse(JSON.parse(readFileSync('.build/sbom.cdx.json', 'utf8')))
    expect([bomFormat, metadata.component.name]).toEqual(['CycloneDX', 'bursar'])
    const names = components.map(({ name }) => name)
    for (const name of ['viem', 'hono', 'preact', 'pg', '@electric-sql/pglite', '@foundry-rs/anvil'])
      expect(names).toContain(name)
    expect(new Set(components.map(({ purl }) => purl)).size).toBe(components.length)
  })

  it('starts the sandbox by its name alone, pays, and serves every page', async () => {
    const child = spawn(join(folder, 'node_modules/.bin/bursar'), {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: folder, PORT: '0', NO_COLOR: '1', LOG_LEVEL: 'warn' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    try {
      await expectServed(await readOrigin(child))
    } finally {
      child.kill('SIGTERM')
    }
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
  }, 120_000)
})
