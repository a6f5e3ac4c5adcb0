/** The image starts, pays once and serves the console; the package holds the same files. */
import { execFileSync, type spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
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
  it('has every program, page and statement of the image', () => {
    const packed = z
      .tuple([z.object({ files: z.array(z.object({ path: z.string() })) })])
      .parse(
        JSON.parse(
          execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { encoding: 'utf8' }),
        ),
      )
    const paths = packed[0].files.map(({ path }) => path)
    const copied = (final?.instructions ?? []).flatMap(({ name, text }) =>
      name === 'COPY' && text.startsWith('--from=build') ? [/\/bursar\/(\S+)/.exec(text)?.[1] ?? ''] : [],
    )
    // Prepared files are made again where they are missing.
    const folders = copied
      .filter((folder) => folder !== '.cache')
      .map((folder) => folder.replace('/*.md', ''))
    expect(folders.length).toBeGreaterThan(3)
    const isFile = (path: string) => statSync(path).isFile()
    expect(folders.filter((path) => isFile(path) && !paths.includes(path))).toEqual([])
    for (const folder of folders.filter((path) => !isFile(path))) {
      const isGuide = folder === 'docs'
      const files = readdirSync(folder, { recursive: !isGuide, withFileTypes: true })
        .filter((entry) => entry.isFile() && (!isGuide || entry.name.endsWith('.md')))
        .map((entry) => join(entry.parentPath, entry.name))
        .filter((path) => !path.includes('pages/client') || path.endsWith('.js'))
      expect(files.filter((path) => !paths.includes(path))).toEqual([])
    }
  })
})
