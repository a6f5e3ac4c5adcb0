/** The image starts, pays once and serves the console; so does the package, as npm installs it. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
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

const [build, final] = readStages('Dockerfile')

describe.skipIf(!canCarryOut())('the image of the Dockerfile', () => {
  let image: Image
  beforeAll(() => {
    // This checkout is the stage that builds: it was installed and built by the same commands.
    if (final !== undefined)
      image = carryOut(final, { context: '.', built: new Map([['build', resolve('.')]]) })
  })
  afterAll(() => image?.remove())

  it('is built by the commands that installed and built this checkout', () => {
    const commands = build?.instructions.filter(({ name }) => name === 'RUN').map(({ text }) => text)
    expect(commands?.join('\n')).toMatch(/^npm ci .*\nnpm run build/)
  })

  it('starts as a user without rights, pays, and serves every page', async () => {
    const port = String(await closedPort())
    const child = image.start({ PORT: port, NO_COLOR: '1', LOG_LEVEL: 'warn' })
    try {
      await expectServed(await readOrigin(child))
      expect(readFileSync(`/proc/${child.pid}/status`, 'utf8')).toMatch(/^Uid:\s+1000\s+1000/m)
      expect(image.run(['env', `PORT=${port}`, ...image.healthCheck])).toBe('')
    } finally {
      child.kill('SIGTERM')
    }
    const [code] = await once(child, 'exit')
    expect(code).toBe(0)
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

  it('has every program, page and statement of the image', () => {
    const copied = (final?.instructions ?? []).flatMap(({ name, text }) =>
      name === 'COPY' && text.startsWith('--from=build') ? [/\/bursar\/(\S+)/.exec(text)?.[1] ?? ''] : [],
    )
    // Prepared files are made again where they are missing.
    const places = copied.filter((place) => place !== '.cache').map((place) => place.replace('/*.md', ''))
    expect(places.length).toBeGreaterThan(3)
    const listFiles = (place: string): string[] => {
      if (statSync(place).isFile()) return [place]
      const isGuide = place === 'docs'
      return readdirSync(place, { recursive: !isGuide, withFileTypes: true })
        .filter((entry) => entry.isFile() && (!isGuide || entry.name.endsWith('.md')))
        .map((entry) => join(entry.parentPath, entry.name))
        .filter((path) => !/\.(map|code)$|meta\.json$/.test(path))
        .filter((path) => !path.includes('pages/client') || path.endsWith('.js'))
    }
    const files = places.flatMap(listFiles)
    expect(files.length).toBeGreaterThan(100)
    expect(files.filter((path) => !existsSync(join(installed, path)))).toEqual([])
  })

  it('installs what the bundle left outside, and names what it holds', () => {
    const { dependencies } = z
      .object({ dependencies: z.record(z.string(), z.string()) })
      .parse(JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')))
    for (const name of ['viem', 'hono', 'x402-hono']) expect(dependencies[name]).toBeUndefined()
    const notices = readFileSync(join(installed, 'THIRD-PARTY.txt'), 'utf8')
    for (const name of ['viem', 'hono', 'jose', 'preact', 'web-push'])
      expect(notices).toMatch(new RegExp(`^${name} \\d`, 'm'))
    expect(notices).not.toMatch(/GPL-3\.0|UNLICENSED/)
    const [kilobytes = ''] = execFileSync('du', ['-sk', 'node_modules'], {
      cwd: folder,
      encoding: 'utf8',
    }).split('\t')
    process.stdout.write(`the package installs ${Math.round(Number(kilobytes) / 1024)} MB\n`)
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
