/**
 * Delegations in the owner's console: the tree of a run with one stop for each key, what is set aside, whose limit is met first,
 * a new delegation in three steps, and the list of agents. Screenshots lie in `.build/screenshots`.
 */
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findBarriers } from './accessibility.ts'
import {
  expectVisible,
  findChromium,
  giveSession,
  newVisit,
  openSuiteBrowser,
  type Visit,
} from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const executable = findChromium()
if (executable === undefined)
  process.stderr.write('No Chromium here: delegations in the console are not tested. Set CHROMIUM_BIN.\n')

const SCREENSHOTS = '.build/screenshots'
const payee = `0x${'1'.repeat(40)}`
const scopes = ['wallets:read', 'wallets:transfer', 'purchases:pay', 'agents:delegate']
const expiresAt = new Date(Date.now() + 3_000_000).toISOString()
const looks = [
  { name: 'light-1280', width: 1280, colorScheme: 'light' },
  { name: 'dark-1280', width: 1280, colorScheme: 'dark' },
  { name: 'light-375', width: 375, colorScheme: 'light' },
  { name: 'dark-375', width: 375, colorScheme: 'dark' },
] as const

interface Caller {
  readonly agentId: string
  readonly key: string
}

const buildPolicy = (single: string, day: string, total?: string) => ({
  perTransaction: { max: single },
  dailyBudget: { max: day },
  ...(total === undefined ? {} : { totalBudget: { max: total } }),
  categories: { allow: ['transfer', 'x402'] },
})

describe.skipIf(executable === undefined)('delegations in the console', () => {
  const origin = sharedGateway()
  const site = origin.replace('127.0.0.1', 'localhost')
  const browser = openSuiteBrowser()
  let owner: Person
  let root: Caller
  let visit: Visit
  let page: Page
  /** What the browser reports during the test. */
  let complaints: readonly string[]
  beforeAll(() => void mkdirSync(SCREENSHOTS, { recursive: true }))
  beforeEach(async () => {
    owner = await newGuest(origin)
    complaints = []
    visit = await newVisit(browser(), site)
    page = visit.page
    await giveSession(page.context(), site, owner.token)
    await page.setViewportSize({ width: 1280, height: 960 })
    root = await newRoot()
  })
  afterEach(async () => {
    expect(visit.complaints).toEqual(complaints)
    await page.context().close()
  })

  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const heading = (name: string | RegExp) => page.getByRole('heading', { name, exact: true })
  /** The row of a key in the tree, without those below it. */
  const row = (name: string) => page.locator('.run__row', { has: page.getByText(name, { exact: true }) })
  const newRoot = async (): Promise<Caller> => {
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Orchestrator',
      scopes,
      policy: buildPolicy('5', '20'),
    })
    const { id, key } = z.object({ id: z.string(), key: z.string() }).parse(body)
    return { agentId: id, key }
  }
  const delegate = async (parent: Caller, given: Record<string, unknown>): Promise<Caller> => {
    const { status, body } = await requestJson(origin, 'POST', '/api/agents/delegations', {
      headers: { authorization: `Bearer ${parent.key}` },
      body: {
        scopes,
        expiresAt,
        bearer: true,
        ...given,
      },
    })
    expect([status, body]).toEqual([200, expect.anything()])
    return z.object({ agentId: z.string(), key: z.string() }).parse(body)
  }
  const pay = async ({ key }: Caller, amount: string) => {
    const { status } = await requestJson(origin, 'POST', '/api/wallets/transfer', {
      headers: { authorization: `Bearer ${key}` },
      body: { destination: payee, amount, token: 'USDC' },
    })
    return status
  }
  /** A run of three generations, one key of which has ended. */
  const startRun = async () => {
    const research = await delegate(root, {
      name: 'Research helper',
      policy: buildPolicy('3', '8', '8'),
      earmark: true,
      task: 'report-17',
    })
    const reader = await delegate(research, {
      name: 'Web reader',
      policy: buildPolicy('1', '3', '3'),
      earmark: true,
    })
    const translator = await delegate(root, {
      name: 'Translator',
      policy: buildPolicy('2', '4', '4'),
      task: 'translation',
    })
    const old = await delegate(root, { name: 'Earlier run', policy: buildPolicy('2', '2', '2') })
    expect(await pay(old, '1.25')).toBe(200)
    await owner.send('DELETE', `/api/agents/delegations/${old.agentId}`)
    expect(await pay(research, '2.4')).toBe(200)
    expect(await pay(reader, '0.75')).toBe(200)
    expect(await pay(translator, '1.1')).toBe(200)
    return { research, reader, translator, old }
  }
  /** Takes a screenshot of each look. @returns what is too wide or a barrier. */
  const look = async (name: string) => {
    const found: string[] = []
    for (const { name: of, width, colorScheme } of looks) {
      await page.setViewportSize({ width, height: width === 375 ? 844 : 960 })
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.evaluate('Promise.allSettled(document.getAnimations().map((one) => one.finished))')
      if (await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth'))
        found.push(`${of}: too wide`)
      for (const barrier of await findBarriers(page, colorScheme)) found.push(`${of}: ${barrier}`)
      await page.screenshot({ path: `${SCREENSHOTS}/${name}-${of}.png`, fullPage: true })
    }
    await page.setViewportSize({ width: 1280, height: 960 })
    return found
  }

  it('shows what each key of a run has spent of what, and goes on by itself', async () => {
    const { translator } = await startRun()
    await page.goto(`/agents/${root.agentId}`)
    await heading('Who spends from it').waitFor()
    await expectVisible(row('Research helper').getByText('$3.15'))
    expect(await row('Research helper').locator('.run__limit').textContent()).toBe('of $8.00')
    expect(await row('Research helper').getByRole('img').getAttribute('aria-label')).toBe(
      '$3.15 of $8.00 spent in total, $2.60 left, $2.25 set aside for keys below',
    )
    expect(await row('Web reader').locator('.run__used').textContent()).toBe('$0.75')
    await expectVisible(row('Translator').getByText('translation'))
    expect(await page.getByText('Earlier run').count()).toBe(0)
    await button('1 ended, $1.25 spent').click()
    await expectVisible(row('Earlier run').getByText('Ended'))
    expect(await look('delegations-tree')).toEqual([])
    await button('Keys below Research helper').click()
    expect(await row('Web reader').count()).toBe(0)
    await expectVisible(row('Research helper').getByText('1 below it'))
    expect(await pay(translator, '0.9')).toBe(200)
    await expectVisible(row('Translator').getByText('$2.00'))
  }, 180_000)

  it('shows what is set aside as a part of its own', async () => {
    await startRun()
    await page.goto(`/agents/${root.agentId}`)
    const panel = page.getByRole('region', { name: 'Left today' })
    // 20 a day: 5.50 are spent, and 4.85 of the 8 that were set aside are not.
    await panel.getByText('$9', { exact: false }).first().waitFor()
    const figures = await panel.locator('.legend--figures li').allTextContents()
    expect(figures).toEqual(['Left$9.65', 'Set aside below$4.85', 'Spent$5.50'])
    await page.goto('/agents')
    await expectVisible(page.getByText('left today, $4.85 set aside'))
  }, 180_000)

  it('stops one key in place, and says what ends with it and what returns', async () => {
    const { research, reader } = await startRun()
    await page.goto(`/agents/${root.agentId}`)
    await button('Stop Research helper').focus()
    await page.keyboard.press('Enter')
    const asked = page.getByRole('group', { name: 'Stop Research helper' })
    await asked.getByText('1 key below it ends too.').waitFor()
    await expectVisible(asked.getByText('$4.85'))
    await expectVisible(asked.getByText('set aside returns to Orchestrator'))
    expect(await look('delegations-stop')).toEqual([])
    await page.keyboard.press('Escape')
    await expect.poll(() => page.evaluate('document.activeElement?.textContent')).toBe('Stop')
    expect(await asked.count()).toBe(0)
    await page.keyboard.press('Enter')
    await asked.getByRole('button', { name: 'End all 2' }).click()
    await button('2 ended, $4.40 spent').waitFor()
    await expect.poll(() => page.evaluate('document.activeElement?.textContent')).toBe('Who spends from it')
    expect(await pay(research, '0.1')).toBe(401)
    expect(await pay(reader, '0.1')).toBe(401)
    const panel = page.getByRole('region', { name: 'Left today' })
    await panel.getByText('$5.50 of $20.00 spent').waitFor()
  }, 180_000)

  it('says how the first delegation comes to be, and tries again when the tree does not load', async () => {
    await page.goto(`/agents/${root.agentId}`)
    await heading('It spends alone').waitFor()
    await expectVisible(page.getByText('npx bursar run --key agent.json'))
    expect(await look('delegations-none')).toEqual([])
    await page.route('**/tree', (route) => route.abort())
    await page.reload()
    await heading('The tree of its run did not load').waitFor()
    complaints = visit.complaints.filter((words) => words.includes('net::ERR_FAILED'))
    expect(await look('delegations-failed')).toEqual([])
    await page.unroute('**/tree')
    await button('Try again').click()
    await heading('It spends alone').waitFor()
  }, 180_000)

  it('shows the path of a delegated agent, and whose limit it meets first', async () => {
    const { reader, translator } = await startRun()
    for (let paid = 0; paid < 2; paid += 1) expect(await pay(root, '4.7')).toBe(200)
    await page.goto(`/agents/${reader.agentId}`)
    const path = page.getByRole('navigation', { name: 'Agents above it' })
    await path.waitFor()
    expect(await path.getByRole('listitem').allTextContents()).toEqual([
      'Orchestrator',
      'Research helper',
      'Web reader',
    ])
    await expectVisible(path.getByText('The limits of those above hold too.'))
    const panel = page.getByRole('region', { name: 'Left now' })
    await panel.getByText('Its own budget').waitFor()
    expect(await panel.locator('.figure').textContent()).toBe('$2.25')
    expect(await look('delegations-path')).toEqual([])
    // Its own 2.90 in total are more than the root has left today besides what it has set aside for others.
    await page.goto(`/agents/${translator.agentId}`)
    await panel.getByText('has the least on its path: this is what is left there today.').waitFor()
    expect(await panel.locator('.figure').textContent()).toBe('$0.25')
    expect(await look('delegations-least')).toEqual([])
    await panel.getByRole('link', { name: 'Orchestrator' }).click()
    await heading('Orchestrator').waitFor()
    await page.goto(`/agents/${translator.agentId}`)
    await owner.send('POST', `/api/agents/keys/${root.agentId}/pause`)
    await expectVisible(page.getByText('An agent above it is stopped'))
    expect(await button('Start again').count()).toBe(0)
  }, 180_000)

  it('delegates in three steps, keeps what was typed, and shows the key once', async () => {
    await page.goto(`/agents/${root.agentId}`)
    await button('Delegate').click()
    await heading('Delegate from Orchestrator').waitFor()
    await button('Continue').click()
    await page.getByText('Give it a name that you recognize.').waitFor()
    expect(await page.evaluate('document.activeElement?.getAttribute("aria-invalid")')).toBe('true')
    await page.getByLabel('Name').fill('Research helper')
    await page.getByLabel('Task').fill('report-17')
    await page.getByText('What it may do').click()
    await page.getByLabel('Make purchases').uncheck()
    expect(await look('delegate-1')).toEqual([])
    await button('Cancel').click()
    await button('Delegate').click()
    expect(await page.getByLabel('Task').inputValue()).toBe('report-17')
    await page.keyboard.press('Enter')
    await button('Continue').click()
    await page.getByLabel('In total').fill('8')
    await page.getByLabel('At a time').fill('6')
    await expectVisible(page.getByText('Then Orchestrator has today'))
    expect(await page.locator('.delegate__after .legend li').allTextContents()).toEqual([
      'Left$12.00',
      'Set aside$8.00',
      'Spent$0.00',
    ])
    expect(await look('delegate-2')).toEqual([])
    await button('Continue').click()
    await button('Create the key').click()
    // The gateway's answer stands at the field, in the step that has it.
    await page.getByText('wider than the policy of the key above').waitFor()
    expect(await page.getByLabel('At a time').getAttribute('aria-invalid')).toBe('true')
    await page.getByLabel('At a time').fill('2')
    await button('Continue').click()
    await expectVisible(page.getByText('in total, set aside from Orchestrator'))
    expect(await look('delegate-3')).toEqual([])
    await page.getByRole('button', { name: 'How much' }).click()
    expect(await page.getByLabel('In total').inputValue()).toBe('8')
    await button('Continue').click()
    complaints = visit.complaints.filter((words) => words.includes('status of 400'))
    await button('Create the key').click()
    await heading('Research helper is ready').waitFor()
    expect(await page.evaluate('document.activeElement?.textContent')).toBe('Research helper is ready')
    const key = (await page.locator('.copy code').first().textContent()) ?? ''
    expect(await page.locator('.copy code').nth(1).textContent()).toContain(`Authorization: Bearer ${key}`)
    expect(await look('delegate-4')).toEqual([])
    expect(await pay({ agentId: '', key }, '2')).toBe(200)
    const { body } = await requestJson(origin, 'GET', '/api/agents/self', {
      headers: { authorization: `Bearer ${key}` },
    })
    expect(body).toMatchObject({ scopes: ['wallets:read', 'wallets:transfer'] })
    await button('Done').click()
    await expectVisible(row('Research helper').getByText('$2.00'))
    await button('Delegate').click()
    expect(await page.getByLabel('Name').inputValue()).toBe('')
  }, 180_000)

  it('says at the amount that less is left than is to be set aside, and registers a public key', async () => {
    await startRun()
    await page.goto(`/agents/${root.agentId}`)
    await button('Delegate').click()
    await page.getByLabel('Name').fill('Second helper')
    await button('Continue').click()
    await page.getByLabel('In total').fill('12')
    await expectVisible(page.getByText('more than it has left today'))
    await button('Continue').click()
    await page.getByRole('radio', { name: /Its own key pair/ }).check()
    await button('Create the key').click()
    await page.getByText('Paste the public key of the agent.').waitFor()
    const { x } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
    await page.getByLabel('Public key').fill(x ?? '')
    await button('Create the key').click()
    await page.getByText('Orchestrator has only $9.65 left to set aside.').waitFor()
    complaints = visit.complaints.filter((words) => words.includes('status of 403'))
    expect(await look('delegate-refused')).toEqual([])
    await page.getByRole('radio', { name: /Up to this much/ }).check()
    await button('Continue').click()
    await button('Create the key').click()
    await heading('Second helper is ready').waitFor()
    await expectVisible(page.getByText('--key agent.json'))
  }, 180_000)

  it('keeps deep trees and long names within the width of a phone', async () => {
    const name = `Reads what suppliers publish about lead times ${'<b>'.repeat(8)}`
    let parent = root
    for (let depth = 1; depth <= 4; depth += 1) {
      const policy = buildPolicy('4', '15', String(16 - depth))
      parent = await delegate(parent, {
        name: `${depth} ${name}`,
        policy,
        earmark: true,
        task: 'x'.repeat(64),
      })
    }
    expect(await pay(parent, '3.5')).toBe(200)
    await page.goto(`/agents/${root.agentId}`)
    const folded = page.getByRole('button', { name: /^Keys below 2/ })
    await folded.waitFor()
    expect(await folded.getAttribute('aria-expanded')).toBe('false')
    await folded.click()
    await page.getByRole('button', { name: /^Keys below 3/ }).click()
    await page.getByRole('button', { name: /^Stop 2/ }).click()
    await expectVisible(page.getByText('2 keys below it end too.'))
    expect(await look('delegations-deep')).toEqual([])
    await page.goto(`/agents/${parent.agentId}`)
    await page.getByRole('navigation', { name: 'Agents above it' }).waitFor()
    expect(await button('Delegate').count()).toBe(0)
    expect(await look('delegations-deepest')).toEqual([])
  }, 180_000)

  it('lists agents under the one above them, and folds many and those that ended', async () => {
    const { research } = await startRun()
    for (let number = 1; number <= 4; number += 1)
      await delegate(root, { name: `Worker ${number}`, policy: buildPolicy('1', '1', '1') })
    await page.goto('/agents')
    const list = page.getByRole('region', { name: 'Active' })
    const top = list.locator('.rows > li')
    await list.getByRole('link', { name: /Orchestrator/ }).waitFor()
    expect(await top.count()).toBe(1)
    await expectVisible(button('4 more'))
    await button('1 ended').click()
    await expectVisible(list.getByRole('link', { name: /Earlier run.*Ended.*\$1\.25 spent/ }))
    await button('4 more').click()
    expect(await look('delegations-list')).toEqual([])
    const nested = list.getByRole('listitem').filter({ hasText: 'Research helper' }).last()
    await expectVisible(nested.getByRole('link', { name: /Web reader/ }))
    await page.goto('/')
    await expectVisible(page.getByRole('link', { name: /Orchestrator.*7 below it/ }))
    await owner.send('DELETE', `/api/agents/delegations/${research.agentId}`)
    await expectVisible(page.getByRole('link', { name: /Orchestrator.*5 below it/ }))
  }, 180_000)

  it('shows the task of an entry, and all that was spent for it', async () => {
    await startRun()
    await page.goto('/activity')
    await page.getByText('translation').first().waitFor()
    const entry = page.locator('details', { hasText: 'translation' })
    await entry.locator('summary').click()
    await entry.getByRole('link', { name: 'translation' }).click()
    await button('Task translation: show all tasks').waitFor()
    await expect.poll(() => page.locator('details').count()).toBe(1)
    expect(await look('delegations-task')).toEqual([])
    await button('Task translation: show all tasks').click()
    await expect.poll(() => page.locator('details').count()).toBeGreaterThan(3)
  }, 180_000)
})
