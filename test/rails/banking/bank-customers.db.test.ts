/** Customers of a bank that verifies persons itself, against a server as strict as the bank's documentation. */
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import type { Tool } from '../../../src/kernel/tool.ts'
import { createBridgeBanking } from '../../../src/providers/banking/bridge.ts'
import { noticeBankCustomer } from '../../../src/rails/banking/bank-customer.ts'
import { openWallet } from '../../../src/rails/wallets/open-wallet.ts'
import banking from '../../../tools/banking/create.ts'
import getCustomer from '../../../tools/banking/customer/get.ts'
import startCustomer from '../../../tools/banking/customer/start.ts'
import kyc from '../../../tools/compliance/kyc.ts'
import { startBridgeServer } from '../../contracts/bridge-server.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, newPerson, noon, servicesOn } from '../../kernel/scene.ts'

onBothEngines('customers of the bank', (database) => {
  let server: Awaited<ReturnType<typeof startBridgeServer>>
  let services: Services
  let count = 0
  beforeAll(async () => {
    server = await startBridgeServer()
    const bankingProvider = createBridgeBanking({
      ...{ url: server.url, apiKey: 'secret', webhookKeys: [], log: silentLog },
    })
    services = await servicesOn(database(), { bankingProvider })
  })
  afterAll(() => server.close())
  beforeEach(() => {
    server.state.interrupt = () => false
  })

  const newOwner = async (email?: string) => {
    const person = await newPerson(database())
    const accountId = person.account.id
    const call = async (tool: Tool, input: unknown = {}, idempotencyKey: string | null = null) =>
      (await run(tool, buildCall(services, person, { idempotencyKey }), input)).body
    await openWallet(services, { accountId, at: noon })
    count += 1
    await call(kyc, {
      applicant: {
        ...{ firstName: 'Ada', lastName: 'Lovelace', dateOfBirth: '1990-12-10', country: 'US' },
        ...{ address: 'Main Street 1', email: email ?? `owner${count}@example.com` },
      },
    })
    const link = () => {
      const found = [...server.links.values()].at(-1)
      if (found === undefined) throw new Error('there is no link')
      return found
    }
    return { accountId, call, link, open: () => call(banking, { currency: 'USD' }) }
  }
  const approve = (link: {
    id: string
    kyc_status: string
    tos_status: string
    customer_id: string | null
  }) =>
    Object.assign(link, { kyc_status: 'approved', tos_status: 'approved', customer_id: `cust_of_${link.id}` })

  it('open accounts once identity and terms are approved on the bank’s pages', async () => {
    const owner = await newOwner()
    await expect(owner.open()).rejects.toMatchObject({ code: 'kyc_required' })
    expect(await owner.call(getCustomer)).toMatchObject({ status: 'none' })
    expect(await owner.call(startCustomer)).toEqual({
      status: 'open',
      kycUrl: owner.link().kyc_link,
      termsUrl: owner.link().tos_link,
    })
    await expect(owner.open()).rejects.toMatchObject({ code: 'kyc_required' })
    Object.assign(owner.link(), { kyc_status: 'approved', customer_id: 'cust_early' })
    expect(await owner.call(getCustomer)).toMatchObject({ status: 'open', kycUrl: null })
    await expect(owner.open()).rejects.toMatchObject({ code: 'kyc_required' })
    owner.link().tos_status = 'approved'
    expect(await owner.open()).toMatchObject({ status: 'active', bankName: 'Lead Bank' })
    expect(await owner.call(getCustomer)).toEqual({ status: 'approved', kycUrl: null, termsUrl: null })
    expect(server.asked.at(-2)).toMatchObject({ path: '/v0/customers/cust_early/virtual_accounts' })
  })

  it('are started once, also when the answer is lost, and their links are stored nowhere', async () => {
    const owner = await newOwner()
    const before = server.links.size
    server.state.interrupt = (_asked, response) => {
      server.state.interrupt = () => false
      response.destroy()
      return true
    }
    await expect(owner.call(startCustomer, {}, 'key-1')).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
    expect(await owner.call(startCustomer, {}, 'key-2')).toMatchObject({ status: 'open' })
    expect(await owner.call(startCustomer, {}, 'key-2')).toMatchObject({ kycUrl: null, termsUrl: null })
    expect(await owner.call(startCustomer, {}, 'key-3')).toMatchObject({ kycUrl: owner.link().kyc_link })
    expect(server.links.size - before).toBe(1)
    const { rows } = await sql<{ all: string }>`
      select (select json_agg(b) from bank_customer b)::text || (select json_agg(i) from idempotency i)::text as all
    `.execute(database().kysely)
    expect(rows[0]?.all).toContain('kyc_link_')
    expect(rows[0]?.all).not.toContain('t=private')
  })

  it('are never those of another person with the same e-mail address', async () => {
    const first = await newOwner('shared@example.com')
    await first.call(startCustomer)
    approve(first.link())
    const second = await newOwner('shared@example.com')
    await expect(second.call(startCustomer)).rejects.toMatchObject({ code: 'conflict' })
    await expect(second.open()).rejects.toMatchObject({ code: 'kyc_required' })
  })

  it('follow notices by asking the bank, whatever a notice says', async () => {
    const owner = await newOwner()
    await owner.call(startCustomer)
    const event = (status: string) =>
      services.bankingProvider.read({
        ...{ event_id: 'e', event_category: 'customer', event_type: 'customer.updated.status_transitioned' },
        ...{ event_object_id: `cust_of_${owner.link().id}`, event_object_status: status },
        event_object: { status },
      })
    const notice = async (status: string) => {
      const { kind, objectId, customer } = event(status)
      expect(kind).toBe('customer')
      await noticeBankCustomer(services, { objectId, customer, at: noon })
    }
    await notice('active')
    await expect(owner.open()).rejects.toMatchObject({ code: 'kyc_required' })
    approve(owner.link())
    await owner.call(getCustomer)
    owner.link().kyc_status = 'offboarded'
    await notice('active')
    await expect(owner.open()).rejects.toMatchObject({ message: expect.stringContaining('paused') })
  })
})
