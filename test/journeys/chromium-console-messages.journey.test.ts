/** The console's page of messages in a real browser: channels are added and removed, and what was sent is read. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BOT_TOKEN, CHAT, startChatServices } from '../records/notifications/chat-services.ts'
import { findBarriers } from './accessibility.ts'
import { newAgent } from './agent.ts'
import { findChromium } from './chromium.ts'
import { type ConsoleScene, openConsole, takePictures } from './console-scene.ts'
import type { Gateway } from './gateway.ts'
import type { Person } from './people.ts'

const executable = findChromium()

describe.skipIf(executable === undefined)('the page of messages in Chromium', () => {
  let services: Awaited<ReturnType<typeof startChatServices>>
  let scene: ConsoleScene
  let gateway: Gateway
  let owner: Person
  let page: Page
  beforeAll(async () => {
    services = await startChatServices()
    scene = await openConsole({ TELEGRAM_API_URL: services.origin })
    ;({ gateway, owner, page } = scene)
  }, 180_000)
  afterAll(async () => {
    await scene?.close()
    services?.close()
  })

  const picture = (name: string) => takePictures(page, name)
  const ask = async () => {
    const agent = await newAgent()
    await owner.send('POST', '/api/agents/keys', {
      name: 'Invoice <b>bot</b>',
      publicKey: agent.jwk,
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '50' },
        dailyBudget: { max: '100' },
        categories: { allow: ['transfer'] },
        approval: { above: '10' },
      },
    })
    const body = JSON.stringify({
      destination: `0x${'1'.repeat(40)}`,
      amount: '25.50',
      signature: 'sandbox',
      reason: '<!channel> see https://evil.example',
    })
    await agent.fetch({
      method: 'POST',
      url: `${gateway.origin}/api/wallets/transfer`,
      body,
      idempotencyKey: 'one',
    })
  }

  it('says that nothing was sent, and that the list did not load', async () => {
    await page.goto('/messages')
    await page.getByText('Nothing was sent yet').waitFor()
    await page.getByText('No channel yet').waitFor()
    await picture('empty')
    await page.route('**/api/notifications/messages?**', (route) => route.abort())
    await page.reload()
    await page.getByText('The list of messages did not load').waitFor()
    await picture('failed')
    await page.unroute('**/api/notifications/messages?**')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('Nothing was sent yet').waitFor()
    expect(await findBarriers(page, 'light')).toEqual([])
  }, 120_000)

  it('adds channels, tells of one that is refused, and shows what was sent', async () => {
    await page.getByRole('button', { name: 'Add a channel' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Webhook').fill('http://hooks.slack.com/services/x')
    await dialog.getByLabel('Name').fill('Finance')
    await dialog.getByRole('button', { name: 'Add the channel' }).click()
    await dialog.getByText(/not https/).waitFor()
    await picture('refused')
    await dialog.getByLabel('Webhook').fill(services.webhookUrl)
    await dialog.getByRole('button', { name: 'Add the channel' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Add a channel' }).click()
    await dialog.getByRole('button', { name: 'Telegram' }).click()
    await dialog.getByLabel('Token of your bot').fill(BOT_TOKEN)
    await dialog.getByLabel('Chat', { exact: true }).fill(CHAT)
    expect(await findBarriers(page, 'light')).toEqual([])
    await dialog.getByRole('button', { name: 'Add the channel' }).click()
    await dialog.waitFor({ state: 'detached' })
    // A deleted webhook, which fails from its first message on.
    await owner.send('POST', '/api/notifications/channels', {
      type: 'slack',
      webhookUrl: `${services.origin}/services/T0001/B0001/gone`,
    })
    await ask()
    const sent = page.getByRole('region', { name: 'What was sent' })
    await expect
      .poll(() => sent.getByText('An agent asks for your approval').count(), { timeout: 30_000 })
      .toBe(3)
    await sent.getByText('Left afterwards: 74.5 USD today').first().waitFor()
    await sent.getByText('Invoice <b>bot</b>').first().waitFor()
    expect(await sent.getByRole('link', { name: /evil/ }).count()).toBe(0)
    await page.reload()
    await page
      .getByRole('region', { name: 'Channels' })
      .getByText('Slack has removed this webhook.')
      .waitFor()
    await picture('ready')
    expect(await findBarriers(page, 'light')).toEqual([])
    expect(await page.content()).not.toContain(BOT_TOKEN)
    await sent.getByRole('link', { name: 'An agent asks for your approval' }).first().click()
    await page.waitForURL(/\/approvals\/appr_/)
    await page.goBack()
    await page.getByRole('button', { name: 'Remove Finance' }).click()
    await page.getByText('That channel gets no more messages.').waitFor()
    expect((await owner.send('GET', '/api/notifications/channels')).body.channels).toHaveLength(2)
    // What was sent to it is still there.
    await sent.getByText('An agent asks for your approval').first().waitFor()
  }, 120_000)
})
