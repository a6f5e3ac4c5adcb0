/**
 * The documentation, over HTTP and in a real browser: complete, with samples that run, links that resolve, no external
 * requests and no content-policy violations.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { transformSync } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { failureCodes } from '../../src/core/failures/failure.ts'
import { guideGroups } from '../../src/server/http/pages/docs/guides.ts'
import { expectVisible, findChromium, newVisit, openSuiteBrowser } from './chromium.ts'
import { sharedGateway } from './gateway.ts'

const executable = findChromium()
if (executable === undefined)
  process.stderr.write(
    'No Chromium here: the documentation is not tested. Install one or set CHROMIUM_BIN.\n',
  )

const hasPython = spawnSync('python3', ['--version']).status === 0

const gateway = { origin: sharedGateway() }

/** The page's HTML. */
async function pageAt(path: string): Promise<string> {
  const response = await fetch(`${gateway.origin}${path}`)
  expect([path, response.status]).toEqual([path, 200])
  return response.text()
}

async function operations(): Promise<{ id: string; route: string }[]> {
  const { paths } = z
    .object({ paths: z.record(z.string(), z.record(z.string(), z.object({ operationId: z.string() }))) })
    .parse(await (await fetch(`${gateway.origin}/api/openapi.json`)).json())
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({
      id: operationId,
      route: `${method.toUpperCase()} ${path}`,
    })),
  )
}

async function searchIndex() {
  const entry = z.object({ kind: z.string(), title: z.string(), href: z.string() })
  return z.array(entry).parse(JSON.parse(await pageAt('/docs/search.json')))
}

/** The sample of a language in a page of the reference. */
function sampleIn(html: string, language: string): string | undefined {
  const [, text] =
    new RegExp(`<div class="sample ${language}"><pre[^>]*><code>([^<]*)</code>`).exec(html) ?? []
  return text === undefined ? undefined : unescapeHtml(text)
}

function unescapeHtml(html: string): string {
  return html
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

function run(program: string, args: readonly string[], input?: string): string {
  return execFileSync(program, args, { encoding: 'utf8', input, timeout: 30_000 })
}

describe('the documentation', () => {
  it('has a page for every guide and operation, each found by the search', async () => {
    const index = await searchIndex()
    const titles = new Set(index.map(({ title }) => title))
    for (const [slug] of guideGroups.flatMap(([, guides]) => [...guides])) await pageAt(`/docs/${slug}`)
    const all = await operations()
    expect(all.length).toBeGreaterThan(100)
    expect(all.filter(({ route }) => !titles.has(route))).toEqual([])
    expect(failureCodes.filter((code) => !titles.has(code))).toEqual([])
    expect(new Set(index.filter(({ kind }) => kind === 'operation').map(({ href }) => href)).size).toBe(
      all.length,
    )
  })

  it('has samples in three languages for every operation, which are valid programs', async () => {
    const pages = (await searchIndex()).filter(({ kind }) => kind === 'operation')
    const samples = await Promise.all(
      pages.map(async ({ title, href }) => {
        const html = await pageAt(href)
        const [curl, client, python] = ['curl', 'client', 'python'].map((one) => sampleIn(html, one))
        return { title, curl, client, python }
      }),
    )
    expect(samples.filter(({ curl, python }) => !curl || !python)).toEqual([])
    // Clients do not call the webhooks of providers.
    expect(
      samples.filter(({ client }) => !client).every(({ title }) => title.includes('/api/webhooks/')),
    ).toBe(true)
    for (const { client } of samples) transformSync(client ?? '', { loader: 'ts', format: 'esm' })
    const shell = samples.map(({ curl }, index) => `f${index}() {\n${curl}\n}`).join('\n')
    run('bash', ['-n'], shell)
    if (!hasPython) return
    const program = 'import ast, json, sys\nfor text in json.load(sys.stdin): ast.parse(text)'
    run('python3', ['-c', program], JSON.stringify(samples.map(({ python }) => python)))
  })

  it('has samples that run as pasted, with a key, a session, and a payment', async () => {
    const answers = async (path: string, isPython = hasPython) => {
      const html = await pageAt(path)
      const [curl = '', client = '', python = ''] = ['curl', 'client', 'python'].map((one) =>
        sampleIn(html, one),
      )
      return [
        run('bash', ['-c', curl]),
        run(process.execPath, ['--input-type=module', '-e', client]),
        ...(isPython ? [run('python3', ['-c', python])] : []),
      ]
    }
    for (const answer of await answers('/docs/reference/wallets/wallets-get'))
      expect(answer).toMatch(/balances/)
    for (const answer of await answers('/docs/reference/wallets/wallets-transfer'))
      expect(answer).toMatch(/confirmed|settlement_pending/)
    for (const answer of await answers('/docs/reference/agents/agents-keys-list'))
      expect(answer).toMatch(/"?keys"?:/)
  })

  it('has a quick start whose commands pay, are denied, and show both', async () => {
    const text = readFileSync('docs/quick-start.md', 'utf8').replaceAll(
      'http://127.0.0.1:8787',
      gateway.origin,
    )
    const blocks = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block.trim())
    const home = unescapeHtml((await pageAt('/docs')).replace(/<[^>]*>/g, ''))
    for (const block of blocks) expect(home).toContain(block)
    const output = run('bash', ['-c', blocks.join('\necho; echo ----\n')])
    const [, wallet, payment, denial, activity] = output.split('----')
    expect(wallet).toContain('"balances"')
    expect(payment).toContain('"status":"confirmed"')
    expect(denial).toContain('"code":"policy_denied"')
    expect(denial).toContain('"rule":"per_transaction"')
    expect(activity).toContain('"1.25')
  })

  it('has internal links that all resolve, to anchors too', async () => {
    const pages = new Map<string, string>()
    const links: { from: string; to: string }[] = []
    const queue = ['/docs']
    for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
      if (pages.has(path)) continue
      const html = await pageAt(path)
      pages.set(path, html)
      for (const [, href = ''] of html.matchAll(/ (?:href|src)="([^"]*)"/g)) {
        if (href.startsWith('https://')) continue
        const { pathname, hash } = new URL(href, `${gateway.origin}${path}`)
        links.push({ from: path, to: `${pathname}${hash}` })
        if (/^\/(docs|errors|assets|api|favicon\.ico)/.test(pathname)) queue.push(pathname)
      }
    }
    const broken = links.filter(({ to }) => {
      const [path = '', anchor] = to.split('#')
      const html = pages.get(path)
      return html === undefined || (anchor !== undefined && !html.includes(`id="${anchor}"`))
    })
    expect(broken).toEqual([])
    expect(pages.size).toBeGreaterThan(200)
  })
})

describe('the pages that problem types link to', () => {
  it('exist for every code, and are listed', async () => {
    const list = await (await fetch(`${gateway.origin}/errors`)).text()
    for (const code of failureCodes) {
      expect(list).toContain(`href="/errors/${code}"`)
      const page = await fetch(`${gateway.origin}/errors/${code}`)
      expect([code, page.status, page.headers.get('content-type')]).toEqual([
        code,
        200,
        'text/html; charset=UTF-8',
      ])
      expect(await page.text()).toContain(`<code>${code}</code>`)
    }
    expect((await fetch(`${gateway.origin}/errors/made_up`)).status).toBe(404)
    expect((await fetch(`${gateway.origin}/errors/constructor`)).status).toBe(404)
  })

  it('are reached by the type of a real problem', async () => {
    const refusal = await fetch(`${gateway.origin}/api/wallets`)
    const { type } = z.object({ type: z.string() }).parse(await refusal.json())
    const page = await fetch(new URL(type, refusal.url))
    expect([page.status, (await page.text()).includes('Not authenticated')]).toEqual([200, true])
  })
})

/** Failures of the basics: levels of headings, names of fields and buttons, and width. Empty if there are none. */
const basics = `(() => {
  const found = []
  let level = 0
  for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
    const next = Number(heading.tagName[1])
    if (next > level + 1) found.push('after h' + level + ' comes ' + heading.tagName + ' ' + heading.textContent)
    level = next
  }
  if (document.querySelectorAll('h1').length !== 1) found.push('not one h1')
  for (const field of document.querySelectorAll('input, textarea, select'))
    if (field.labels.length === 0) found.push('no label: ' + field.outerHTML)
  for (const one of document.querySelectorAll('button, a'))
    if (one.textContent.trim() === '') found.push('no name: ' + one.outerHTML)
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id)
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push('twice: #' + id)
  if (document.documentElement.scrollWidth > innerWidth) found.push('wider than ' + innerWidth)
  return found
})()`

describe.skipIf(executable === undefined)('the documentation in Chromium', () => {
  const browser = openSuiteBrowser()

  it('finds an operation by the keyboard, tries it with the demo key, and loads nothing from elsewhere', async () => {
    const { page, complaints } = await newVisit(browser(), gateway.origin)
    const hosts = new Set<string>()
    page.on('request', (request) => hosts.add(new URL(request.url()).origin))
    await page.goto('/docs')
    await page.keyboard.press('/')
    await page.keyboard.type('wallets transfer')
    await page.getByRole('option', { name: 'POST /api/wallets/transfer Send' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: /POST \/api\/wallets\/transfer/ }).waitFor()
    await expect.poll(() => page.getByLabel('Key', { exact: true }).inputValue()).toMatch(/^bsk_sandbox_/)
    await page.getByRole('button', { name: 'Send' }).click()
    await page
      .locator('#response')
      .getByText(/^200 .*ms$/)
      .waitFor()
    await page.locator('#response').getByText('"status": "confirmed"').waitFor()

    await page.getByText('Python', { exact: true }).click()
    await page.locator('.sample.python').getByText('urllib.request').first().waitFor()
    await page.getByRole('button', { name: 'Yes', exact: true }).click()
    await page.getByText('Thank you.').waitFor()
    expect([...hosts]).toEqual([gateway.origin])
    expect(complaints).toEqual([])
  })

  it('tries an operation of a person with a new guest, then with the same session, in a cookie hidden from scripts', async () => {
    const { page, complaints } = await newVisit(browser(), gateway.origin)
    const send = async () => {
      await page.getByRole('button', { name: 'Send' }).click()
      await page
        .locator('#response')
        .getByText(/^200 .*ms$/)
        .waitFor()
      return page.locator('#response pre').textContent()
    }
    const session = async () => (await page.context().cookies()).find(({ name }) => name === 'bursar_session')
    await page.goto('/docs/reference/auth/auth-session')
    const first = await send()
    expect(await session()).toMatchObject({ httpOnly: true })
    await page.reload()
    expect(JSON.parse((await send()) ?? '')).toMatchObject({ account: JSON.parse(first ?? '').account })
    expect(await page.evaluate('document.cookie')).toBe('')
    // An operation that anyone may call leaves the reader's session alone, and shows no token.
    const own = await session()
    await page.goto('/docs/reference/auth/auth-guest')
    expect(await send()).not.toContain('eyJ')
    expect((await session())?.value).toBe(own?.value)
    await page.goto('/docs/reference/agents/agents-keys-create')
    // A change by cookie comes from a page of this origin.
    await page.getByRole('button', { name: 'Send' }).click()
    await page
      .locator('#response [role=status]')
      .getByText(/^\d{3} .*ms$/)
      .waitFor()
    expect(await page.locator('#response pre').textContent()).not.toContain('cross_site_request')
    expect(complaints.filter((text) => !/40[01]/.test(text))).toEqual([])
  })

  it('is searched by touch on a phone', async () => {
    const context = await browser().newContext({
      baseURL: gateway.origin,
      viewport: { width: 360, height: 740 },
      hasTouch: true,
      isMobile: true,
    })
    const page = await context.newPage()
    await page.goto('/docs')
    await page.getByRole('combobox').tap()
    await page.getByRole('combobox').fill('policy_denied')
    await page.getByRole('option', { name: 'policy_denied' }).first().tap()
    await expectVisible(page.getByRole('heading', { name: 'The spend policy denies this' }))
    await context.close()
  })

  it('holds at 360, 768 and 1280 px, with headings in order and names on every field', async () => {
    const { page, complaints } = await newVisit(browser(), gateway.origin)
    const guides = (await searchIndex()).filter(({ kind, href }) => kind === 'guide' && !href.includes('#'))
    const paths = [
      '/docs',
      ...guides.map(({ href }) => href),
      '/docs/reference/wallets',
      '/docs/reference/wallets/wallets-transfer',
      '/docs/reference/agents/agents-keys-create',
      '/docs/reference/compliance/compliance-travel-rule',
      '/errors',
      '/errors/policy_denied',
    ]
    const found: unknown[] = []
    for (const path of paths) {
      await page.goto(path)
      for (const width of [360, 768, 1280]) {
        await page.setViewportSize({ width, height: 900 })
        const failed = await page.evaluate<string[]>(basics)
        if (failed.length > 0) found.push([path, width, failed])
      }
    }
    expect(found).toEqual([])
    expect(complaints).toEqual([])
  })

  it('is readable in dark mode, and states a remedy for each error', async () => {
    const { page, complaints } = await newVisit(browser(), gateway.origin)
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.goto('/errors')
    await page.getByRole('link', { name: 'policy_denied' }).click()
    await page.getByRole('heading', { name: 'The spend policy denies this' }).waitFor()
    await page.getByRole('heading', { name: 'What to do' }).waitFor()
    await page.getByText('"violations"').first().waitFor()
    expect(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')).toBe(
      'rgb(14, 15, 17)',
    )
    expect(complaints).toEqual([])
  })
})
