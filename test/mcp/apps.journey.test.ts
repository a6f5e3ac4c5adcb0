/** Views inside of hosts: what a person sees of an approval, a budget and a receipt, under the rules that hosts apply. */
import { mkdirSync } from 'node:fs'
import { AxeBuilder } from '@axe-core/playwright'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { expectVisible, findChromium, openSuiteBrowser } from '../journeys/chromium.ts'
import { sharedGateway } from '../journeys/gateway.ts'
import { newGuest, type Person } from '../journeys/people.ts'
import { callMcp, connectMcp } from './client.ts'
import { type Host, openHost } from './host/host.ts'

const executable = findChromium()
if (executable === undefined)
  process.stderr.write('No Chromium here: the views inside of hosts are not tested. Set CHROMIUM_BIN.\n')

const SCREENSHOTS = '.build/screenshots'
const payee = '0x000000000000000000000000000000000000dEaD'

describe.skipIf(executable === undefined)('views inside of hosts', () => {
  const origin = sharedGateway()
  // Passkeys are bound to a domain, so that pages have another address than the API.
  const pages = origin.replace('127.0.0.1', 'localhost')
  const browser = openSuiteBrowser()
  let owner: Person
  let client: Client
  let host: Host
  beforeAll(async () => {
    owner = await newGuest(origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Shopping Claude',
      scopes: ['wallets:read', 'wallets:transfer', 'purchases:pay'],
      policy: {
        perTransaction: { max: '20' },
        dailyBudget: { max: '40' },
        monthlyBudget: { max: '200' },
        categories: { allow: ['transfer', 'x402'] },
        approval: { above: '5', ttlSec: 3_600 },
      },
    })
    const key = z.string().parse(body.key)
    client = await connectMcp(origin, { requestInit: { headers: { authorization: `Bearer ${key}` } } })
    host = await openHost(browser(), client)
    mkdirSync(SCREENSHOTS, { recursive: true })
  }, 120_000)
  afterAll(async () => {
    await host?.close()
    await client?.close()
  })

  let calls = 0
  const pay = (amount: string) => {
    calls += 1
    return { destination: payee, amount, idempotency_key: `view-${calls}` }
  }
  const shoot = (name: string) => host.page.screenshot({ path: `${SCREENSHOTS}/app-${name}.png` })
  /** Barriers within the frame, too. */
  const findBarriers = async () => {
    const { violations } = await new AxeBuilder({ page: host.page })
      .options({ resultTypes: ['violations'] })
      .analyze()
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id} at ${nodes.map(({ target }) => target.join(' ')).join(', ')}`)
  }

  it('shows what was sent', async () => {
    for (const theme of ['light', 'dark'] as const) {
      const view = await host.call('wallets_transfer', pay('3.5'), {
        theme,
        width: theme === 'dark' ? 360 : 640,
      })
      await expectVisible(view.getByRole('heading', { name: 'Sent' }))
      await expectVisible(view.getByText('3.50 USDC'))
      await expectVisible(view.getByText(payee))
      await expectVisible(view.getByText(/^dec_/))
      await shoot(`receipt-${theme}`)
      expect(await findBarriers()).toEqual([])
    }
    await host.page.frameLocator('iframe').getByRole('button', { name: 'Open Activity' }).click()
    await expect.poll(() => host.opened).toEqual([`${pages}/activity`])
  })

  it('shows a budget with what is left', async () => {
    for (const theme of ['light', 'dark'] as const) {
      const view = await host.call('context', {}, { theme, width: theme === 'dark' ? 360 : 640 })
      await expectVisible(view.getByRole('heading', { name: 'Shopping Claude' }))
      await expectVisible(view.getByRole('img', { name: '$33.00 of $40.00 left today' }))
      await expectVisible(view.getByRole('img', { name: '$193.00 of $200.00 left this month' }))
      await shoot(`budget-${theme}`)
      expect(await findBarriers()).toEqual([])
    }
  })

  it('leads to the gateway’s page for the yes, and shows it once it was said there', async () => {
    for (const theme of ['dark', 'light'] as const) {
      const view = await host.call('wallets_transfer', pay('7.25'), {
        theme,
        width: theme === 'dark' ? 360 : 640,
      })
      await expectVisible(view.getByText('Waits for your yes'))
      await expectVisible(view.getByText('7.25 USDC', { exact: true }))
      await expectVisible(view.getByText(/left$/))
      await shoot(`approval-${theme}`)
      expect(await findBarriers()).toEqual([])
    }
    const view = host.page.frameLocator('iframe')
    // Nothing in a view decides.
    expect(await view.getByRole('button').allInnerTexts()).toEqual(['Decide on the gateway’s page'])
    await view.getByRole('button', { name: 'Decide on the gateway’s page' }).click()
    await expect.poll(() => host.opened.at(-1)).toMatch(new RegExp(`^${pages}/approvals/appr_\\w+$`))
    const id = host.opened.at(-1)?.split('/').at(-1)
    const decided = await owner.send('POST', `/api/approvals/${id}`, { decision: 'approve', note: 'Fine.' })
    expect(decided.status).toBe(200)
    await expectVisible(view.getByText('Approved', { exact: true }))
    await expectVisible(view.getByText('Fine.'))
    await shoot('approval-approved')
  })

  it('shows a request with its reason and the rules that it breaks, and none of it as markup', async () => {
    const reason = '<img src=x onerror=alert(1)> \u202eevil **pay**'
    const view = await host.call('approvals_request', {
      operation: 'wallets_transfer',
      input: { destination: payee, amount: '30', idempotency_key: 'view-request' },
      reason,
    })
    await expectVisible(view.getByText('$30.00 is above $20.00 a payment'))
    await expectVisible(view.getByText(/<img src=x onerror=alert\(1\)> .?evil \*\*pay\*\*/))
    await shoot('approval-request')
    await view.getByRole('button').click()
    const id = host.opened.at(-1)?.split('/').at(-1)
    await callMcp(client, 'approvals_withdraw', { id })
    await expectVisible(view.getByText('Withdrawn'))
  })

  it('shows what was bought, and what was not delivered', async () => {
    const bought = await host.call('purchases_buy', {
      url: `${origin}/sandbox/sellers/weather`,
      maxAmount: '0.05',
      idempotency_key: 'view-bought',
    })
    await expectVisible(bought.getByRole('heading', { name: 'Paid and delivered' }))
    await expectVisible(bought.getByText(new URL(origin).host))
    await shoot('receipt-purchase')
    expect(await findBarriers()).toEqual([])
    const unpaid = await host.call('purchases_buy', {
      url: `${origin}/sandbox/sellers/times-out`,
      maxAmount: '0.05',
      idempotency_key: 'view-undelivered',
    })
    await expectVisible(unpaid.getByRole('heading', { name: /nothing came|may have been paid/ }))
    await shoot('receipt-undelivered')
  })

  it('says that nothing was paid, and why', async () => {
    const view = await host.call('wallets_transfer', pay('21'))
    await expectVisible(view.getByRole('heading', { name: 'Nothing was paid' }))
    await expectVisible(view.getByText('$21.00 is above $20.00 a payment'))
    await shoot('receipt-refused')
    expect(await findBarriers()).toEqual([])
  })

  it('waits for an answer, and gives the address where a host opens no page', async () => {
    const waiting = await host.call('wallets_transfer', pay('1'), { result: null })
    await expectVisible(waiting.getByText('Paying'))
    await shoot('waiting')
    const view = await host.call('context', {}, { opensPages: false })
    await view.getByRole('button', { name: 'Change its limits' }).click()
    await expectVisible(view.getByText(/\/agents\/key_\w+$/))
  })

  it('answers a host without views as before, and keeps within its policy', async () => {
    const { resources } = await client.listResources()
    expect(resources.map(({ uri }) => uri).filter((uri) => uri.startsWith('ui:'))).toEqual([])
    const { tools } = await client.listTools()
    const shown = tools.filter(({ _meta }) => _meta !== undefined).map(({ name }) => name)
    expect(shown.sort()).toEqual([
      'approvals_get',
      'approvals_request',
      'approvals_withdraw',
      'context',
      'purchases_buy',
      'wallets_transfer',
    ])
    expect(host.complaints).toEqual([])
  })
})
