/** The console's page of people in a real browser: its states, inviting, roles, removing, and payments that several must agree to. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBarriers } from './accessibility.ts'
import { findChromium } from './chromium.ts'
import { type ConsoleScene, openConsole, takePictures } from './console-scene.ts'
import type { Gateway } from './gateway.ts'
import { type Member, newPayer, signInAs } from './members.ts'
import { lastCodeTo, type Person } from './people.ts'

const executable = findChromium()

describe.skipIf(executable === undefined)('the page of people in Chromium', () => {
  let scene: ConsoleScene
  let gateway: Gateway
  let owner: Person
  let page: Page
  let grace: Member
  beforeAll(async () => {
    scene = await openConsole()
    ;({ gateway, owner, page } = scene)
  }, 180_000)
  afterAll(async () => {
    await scene?.close()
  })

  const picture = (name: string) => takePictures(page, name)

  it('says that you are alone, and that the list did not load', async () => {
    await page.goto('/people')
    await page.getByText('Only you so far').waitFor()
    await picture('people-alone')
    expect(await findBarriers(page, 'light')).toEqual([])
    await page.route('**/api/people', (route) => route.abort())
    await page.reload()
    await page.getByText('The list of people did not load').waitFor()
    await picture('people-failed')
    await page.unroute('**/api/people')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('Only you so far').waitFor()
  }, 120_000)

  it('invites, shows who has not accepted yet, and cancels', async () => {
    grace = await signInAs(gateway.origin, 'grace')
    await grace.send('PATCH', '/api/auth/profile', { displayName: 'Grace Hopper' })
    const dialog = page.getByRole('dialog')
    for (const email of ['nobody@example.com', grace.email]) {
      await page.getByRole('button', { name: 'Invite a person' }).click()
      await dialog.getByLabel('E-mail').fill(email)
      await picture('people-inviting')
      expect(await findBarriers(page, 'light')).toEqual([])
      await dialog.getByRole('button', { name: 'Invite' }).click()
      await page.getByText(email).waitFor()
    }
    await picture('people-invited')
    expect(await findBarriers(page, 'light')).toEqual([])
    await page.getByRole('button', { name: 'Cancel the invitation of nobody@example.com' }).click()
    await page.getByText('nobody@example.com').waitFor({ state: 'detached' })
    const code = await lastCodeTo(gateway.origin, grace.email)
    expect((await grace.send('POST', '/api/people/invitations/accept', { code })).status).toBe(200)
    // The list follows by itself.
    await page.getByText('Grace Hopper').waitFor()
  }, 120_000)

  it('changes a role, and requires others for large payments', async () => {
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Change Grace Hopper' }).click()
    await dialog.getByLabel('Role').selectOption('viewer')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The role is changed.').waitFor()
    await page.getByRole('button', { name: 'Change Grace Hopper' }).click()
    await dialog.getByLabel('Role').selectOption('approver')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Require others' }).click()
    await dialog.getByLabel('Above').fill('100')
    await dialog.getByLabel('People who agree').selectOption('2')
    await picture('people-quorum')
    expect(await findBarriers(page, 'light')).toEqual([])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.locator('#quorum').getByText('2 people must agree').waitFor()
    await picture('people-ready')
    expect(await findBarriers(page, 'light')).toEqual([])
    // Fewer people than large payments need are refused, in words.
    await page.getByRole('button', { name: 'Remove Grace Hopper' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await dialog.getByText(/people must agree to some payments/).waitFor()
    await page.keyboard.press('Escape')
  }, 120_000)

  it('shows who agreed to a request, and why one cannot press', async () => {
    const key = await newPayer(gateway.origin, owner)
    const transfer = { destination: `0x${'1'.repeat(40)}`, amount: '120', token: 'USDC' }
    const { body } = await key.send('POST', '/api/wallets/transfer', transfer)
    const path = `/approvals/${String(body.approvalId)}`
    await page.goto(path)
    await page.locator('#agreement').getByText('0 of 2 agreed').waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.locator('#agreement').getByText('1 of 2 agreed: Guest').waitFor()
    await page.locator('#agreement').getByText('You agreed. It waits for the others.').waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).isDisabled()).toBe(true)
    await picture('approval-agreed')
    expect(await findBarriers(page, 'light')).toEqual([])
    await page.goto('/approvals')
    await page.getByText('1 of 2 agreed: Guest').waitFor()
    await picture('approvals-agreed')
    await grace.send('POST', `/api${path}`, { decision: 'approve' })
    await page.getByText('Nothing waits for you').waitFor()
    await page.goto(path)
    await page.getByText('Approved and completed').waitFor()
  }, 120_000)

  it('lets a person leave whom nobody needs', async () => {
    await owner.send('PUT', '/api/agents/policy', { approvals: [] })
    await page.goto('/people')
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Remove Grace Hopper' }).click()
    await picture('people-removing')
    expect(await findBarriers(page, 'light')).toEqual([])
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText('The person is removed.').waitFor()
    await page.getByText('Only you so far').waitFor()
    expect((await grace.send('GET', '/api/wallets')).status).toBe(401)
    // The link of a mail opens the page with its code.
    await page.goto('/people/join#the-code-of-the-mail')
    expect(await page.getByRole('dialog').getByLabel('Code of the mail').inputValue()).toBe(
      'the-code-of-the-mail',
    )
    await picture('people-joining')
  }, 120_000)
})
