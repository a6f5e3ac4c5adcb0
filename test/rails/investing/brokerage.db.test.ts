/** Accounts of persons at the broker, against a server as strict as the broker's documentation. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { openAlarms } from '../../../src/books/alarms/alarms.ts'
import { available, external } from '../../../src/books/ledger/accounts.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import type { Tool } from '../../../src/kernel/tool.ts'
import { createAlpacaBroker } from '../../../src/providers/broker/alpaca.ts'
import { followBrokerageAccounts } from '../../../src/rails/investing/brokerage-account.ts'
import { findBrokerageAccount } from '../../../src/rails/investing/brokerage-store.ts'
import { payDividends } from '../../../src/rails/investing/dividends.ts'
import { settleOrders } from '../../../src/server/jobs/settle-orders.ts'
import kyc from '../../../tools/compliance/kyc.ts'
import getAccount from '../../../tools/investing/account/get.ts'
import openAccount from '../../../tools/investing/account/open.ts'
import order from '../../../tools/investing/order.ts'
import list from '../../../tools/investing/orders/list.ts'
import portfolio from '../../../tools/investing/portfolio.ts'
import { type KeptAccount, startAlpacaServer } from '../../contracts/alpaca-server.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, newPerson, noon, servicesOn } from '../../kernel/scene.ts'
import { answers, describeApplicant } from './answers.ts'
import { movedClock } from './scene.ts'

const quiet = new AbortController().signal

onBothEngines('accounts of persons at the broker', (database) => {
  let clock = movedClock()
  let server: Awaited<ReturnType<typeof startAlpacaServer>>
  let services: Services
  let count = 0
  beforeAll(async () => {
    server = await startAlpacaServer()
    const broker = createAlpacaBroker({
      ...{ url: server.url, dataUrl: server.url, apiKey: 'key', apiSecret: 'secret' },
      ...{ firmAccountId: server.firm.id, clock: () => clock(), log: silentLog, timeoutMs: 500 },
    })
    services = await servicesOn(database(), { broker, clock: () => clock() })
  })
  afterAll(() => server.close())
  beforeEach(() => {
    clock = movedClock()
    server.state.interrupt = () => false
    server.state.opened = 'ACTIVE'
    server.state.journals = 'executed'
    server.state.now = clock
  })
  // Cash of other tests' people does not move any more.
  afterEach(async () => {
    await database().kysely.deleteFrom('alarm').execute()
    await database()
      .kysely.updateTable('brokerage_account')
      .set({ status: 'closed' })
      .where('provider_id', 'is not', null)
      .execute()
  })

  /** The broker executes the next journal, and its answer is lost. */
  const loseAnswerOfJournal = () => {
    server.state.interrupt = ({ method, path, body }, response) => {
      if (method !== 'POST' || path !== '/v1/journals') return false
      server.state.interrupt = () => false
      void fetch(`${server.url}/v1/journals`, {
        method,
        headers: { authorization: 'Basic x', 'idempotency-key': String(body.description) },
        body: JSON.stringify(body),
      }).then(() => response.destroy())
      return true
    }
  }

  /** A verified person with 500 USD. */
  const newInvestor = async (firstName: string, email?: string) => {
    const person = await newPerson(database())
    const accountId = person.account.id
    const call = async (tool: Tool, input: unknown) => {
      const principal = { ...person, session: { ...person.session, steppedUpAt: clock() } }
      const changes = { clientAddress: '203.0.113.7', now: clock() }
      return (await run(tool, buildCall(services, principal, changes), input)).body
    }
    count += 1
    const applicant = describeApplicant(firstName, email ?? `person${count}@example.com`)
    await call(kyc, { applicant })
    await post(database(), {
      id: `deposit:${accountId}`,
      kind: 'deposit',
      reference: accountId,
      at: noon,
      postings: [
        {
          source: external('bank'),
          destination: available(accountId, 'bank'),
          money: { asset: 'USD', units: 50_000n },
        },
      ],
    })
    const place = async (input: object) =>
      String((await call(order, { symbol: 'VTI', side: 'buy', ...input })).id)
    const orders = async () => ((await call(list, {})).orders ?? []) as { status: string; id: string }[]
    const readStatus = async (id: string) => (await orders()).find((one) => one.id === id)?.status
    const readBooked = async () => {
      const { cash, buyingPower, holdings } = (await call(portfolio, {})) as {
        cash: string
        buyingPower: string
        holdings: { qty: string }[]
      }
      return { cash, buyingPower, shares: holdings.map(({ qty }) => qty) }
    }
    const atBroker = async (): Promise<KeptAccount> => {
      const kept = await findBrokerageAccount(database(), accountId)
      const account = server.accounts.get(kept?.providerId ?? '')
      if (account === undefined) throw new Error('there is no such account at the broker')
      return account
    }
    return { accountId, applicant, call, place, readStatus, readBooked, atBroker }
  }
  const follow = async (minutes = 6) => {
    clock.forward(minutes * 60_000)
    await database()
      .kysely.updateTable('brokerage_account')
      .set({ checked_at: new Date(0) })
      .execute()
    await followBrokerageAccounts(services, quiet)
  }
  const settle = async () => {
    clock.forward(5_000)
    await settleOrders(services, quiet)
  }
  const sumsToZero = async () => expect(await trialBalance(database())).toMatchObject({ balanced: true })
  const expectRejection = (reason: string) => ({ code: 'order_rejected', members: { reason } })

  it('are opened from the verified identity, once, and followed until they are active', async () => {
    const ada = await newInvestor('Ada')
    server.state.opened = 'SUBMITTED'
    expect(await ada.call(getAccount, {})).toMatchObject({ status: 'none', requirements: [] })
    await expect(ada.place({ notional: '10' })).rejects.toMatchObject(expectRejection('no_brokerage_account'))
    expect(await ada.call(openAccount, answers)).toMatchObject({ status: 'pending' })
    expect(await ada.call(openAccount, answers)).toMatchObject({ status: 'pending' })
    const sent = server.asked.filter(({ method, path }) => method === 'POST' && path === '/v1/accounts')
    expect(sent).toHaveLength(1)
    expect(sent[0]?.body).toMatchObject({
      contact: {
        email_address: ada.applicant.email,
        street_address: ['Unter den Linden 1'],
        city: 'Berlin',
        postal_code: '10117',
        country: 'DEU',
      },
      identity: { given_name: 'Ada', date_of_birth: '1990-12-10', country_of_tax_residence: 'DEU' },
      disclosures: { is_politically_exposed: false },
      agreements: expect.arrayContaining([expect.objectContaining({ ip_address: '203.0.113.7' })]),
    })
    await expect(ada.place({ notional: '10' })).rejects.toMatchObject(expectRejection('no_brokerage_account'))
    const account = await ada.atBroker()
    account.status = 'ACTION_REQUIRED'
    await follow()
    expect(await ada.call(getAccount, {})).toMatchObject({ status: 'action_required' })
    account.status = 'ACTIVE'
    await follow()
    expect(await ada.call(getAccount, {})).toMatchObject({ status: 'active' })
    expect(await ada.readBooked()).toMatchObject({ cash: '500', buyingPower: '500' })
  })

  it('need a verified identity with every part of the address', async () => {
    const person = await newPerson(database())
    const principal = { ...person, session: { ...person.session, steppedUpAt: noon } }
    await expect(run(openAccount, buildCall(services, principal), answers)).rejects.toMatchObject({
      code: 'kyc_required',
      message: expect.stringContaining('applicant.address.city'),
    })
  })

  it('are opened once when the broker’s answer is lost, and never adopted from somebody else', async () => {
    const ada = await newInvestor('Ada')
    const requests = () =>
      server.asked.filter(({ method, path }) => method === 'POST' && path === '/v1/accounts')
    const before = requests().length
    server.state.interrupt = ({ method, path }, response) => {
      if (method !== 'POST' || path !== '/v1/accounts') return false
      server.state.interrupt = () => false
      server.add({
        contact: { email_address: ada.applicant.email },
        identity: buildIdentity('Ada'),
        created_at: clock().toISOString(),
      })
      response.destroy()
      return true
    }
    await expect(ada.call(openAccount, answers)).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await ada.call(getAccount, {})).toMatchObject({ status: 'opening' })
    await follow()
    expect(await ada.call(getAccount, {})).toMatchObject({ status: 'active' })
    expect(requests().length - before).toBe(1)
    // The address has an account of another person, or one that is older than the application.
    for (const [name, created_at] of [
      ['Bertha', clock().toISOString()],
      ['Cleo', '2020-01-01T00:00:00.000Z'],
    ] as const) {
      const other = await newInvestor('Cleo')
      const contact = { email_address: other.applicant.email }
      server.add({ contact, identity: buildIdentity(name), created_at })
      await expect(other.call(openAccount, answers)).rejects.toMatchObject({ code: 'invalid_request' })
      expect(await other.call(getAccount, {})).toMatchObject({ status: 'none' })
    }
  })

  it('belong to one account here, also for a person with two', async () => {
    const ada = await newInvestor('Ada')
    await ada.call(openAccount, answers)
    const again = await newInvestor('Ada', ada.applicant.email)
    await expect(again.call(openAccount, answers)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(await again.call(getAccount, {})).toMatchObject({ status: 'none' })
    expect(await ada.call(getAccount, {})).toMatchObject({ status: 'active' })
  })

  it('accounts of two people never mix, and the firm’s cash pays for each', async () => {
    const [ada, bob] = [await newInvestor('Ada'), await newInvestor('Bob')]
    for (const person of [ada, bob]) await person.call(openAccount, answers)
    const firm = server.firm.cash
    await ada.place({ notional: '200' })
    await bob.place({ notional: '50' })
    expect(await ada.readBooked()).toEqual({ cash: '300', buyingPower: '300', shares: ['2.000000000'] })
    expect(await bob.readBooked()).toEqual({ cash: '450', buyingPower: '450', shares: ['0.500000000'] })
    const [adas, bobs] = [await ada.atBroker(), await bob.atBroker()]
    expect([adas.shares, bobs.shares, adas.cash, bobs.cash]).toEqual([2, 0.5, 0, 0])
    expect(firm - server.firm.cash).toBe(250)
    await expect(bob.place({ side: 'sell', notional: '100' })).rejects.toMatchObject({
      code: 'insufficient_funds',
    })
    await ada.place({ side: 'sell', notional: '100' })
    expect([adas.shares, bobs.shares, adas.cash]).toEqual([1, 0.5, 100])
    // The proceeds go back to the firm, which owes them to Ada.
    await follow()
    expect([adas.cash, firm - server.firm.cash]).toEqual([0, 150])
    expect(await ada.readBooked()).toMatchObject({ cash: '400' })
    expect(await openAlarms(database())).toEqual([])
    await sumsToZero()
  })

  it('get the cash of an order once when the gateway stops between journal and order', async () => {
    const ada = await newInvestor('Ada')
    await ada.call(openAccount, answers)
    const firm = server.firm.cash
    server.state.interrupt = ({ method, path }, response) => {
      if (method !== 'POST' || !path.endsWith('/orders')) return false
      response.destroy()
      return true
    }
    const id = await ada.place({ notional: '200' })
    expect(await ada.readBooked()).toMatchObject({ cash: '500', buyingPower: '300' })
    expect((await ada.atBroker()).cash).toBe(200)
    // Cash for an open buy is never sent back.
    await follow(0.5)
    server.state.interrupt = () => false
    await settle()
    expect(await ada.readStatus(id)).toBe('filled')
    const account = await ada.atBroker()
    expect([account.cash, account.shares, firm - server.firm.cash]).toEqual([0, 2, 200])
    await follow()
    expect(await ada.readBooked()).toEqual({ cash: '300', buyingPower: '300', shares: ['2.000000000'] })
    await sumsToZero()
  })

  it('get the cash once when the journal’s answer is lost', async () => {
    const ada = await newInvestor('Ada')
    await ada.call(openAccount, answers)
    const firm = server.firm.cash
    loseAnswerOfJournal()
    const id = await ada.place({ notional: '200' })
    await settle()
    expect(await ada.readStatus(id)).toBe('filled')
    expect([firm - server.firm.cash, (await ada.atBroker()).cash]).toEqual([200, 0])
  })

  it('wait for a journal under review, and give the cash back when the order was given up', async () => {
    const ada = await newInvestor('Ada')
    await ada.call(openAccount, answers)
    const firm = server.firm.cash
    server.state.journals = 'pending'
    const id = await ada.place({ notional: '200' })
    await settle()
    expect(await ada.readStatus(id)).toBe('accepted')
    clock.forward(6 * 60_000)
    await settle()
    expect(await ada.readStatus(id)).toBe('rejected')
    expect(await ada.readBooked()).toEqual({ cash: '500', buyingPower: '500', shares: [] })
    // The broker executes it long after.
    server.firm.cash -= 200
    const account = await ada.atBroker()
    account.cash += 200
    server.state.journals = 'executed'
    await follow()
    expect([account.cash, server.firm.cash]).toEqual([0, firm])
    await sumsToZero()
  })

  it('reject an order that the firm cannot pay for, and hold nothing', async () => {
    const ada = await newInvestor('Ada')
    await ada.call(openAccount, answers)
    const { cash } = server.firm
    server.firm.cash = 1
    await expect(ada.place({ notional: '200' })).rejects.toMatchObject(expectRejection('not_funded'))
    server.firm.cash = cash
    expect(await ada.readBooked()).toEqual({ cash: '500', buyingPower: '500', shares: [] })
  })

  it('send what a buy did not use back once, also when the answer is lost', async () => {
    const ada = await newInvestor('Ada')
    await ada.call(openAccount, answers)
    const account = await ada.atBroker()
    const firm = server.firm.cash
    account.cash = 40
    loseAnswerOfJournal()
    await follow()
    await follow()
    await follow()
    expect([account.cash, server.firm.cash - firm]).toEqual([0, 40])
  })

  it('are paid dividends after the tax withheld, once, when the day is over', async () => {
    const [ada, bob] = [await newInvestor('Ada'), await newInvestor('Bob')]
    for (const person of [ada, bob]) await person.call(openAccount, answers)
    await ada.place({ notional: '200' })
    await bob.place({ notional: '100' })
    const account = await ada.atBroker()
    const today = clock().toISOString().slice(0, 10)
    const paid = { account_id: account.id, date: today, symbol: 'VTI', status: 'executed' }
    server.activities.push(
      { ...paid, id: '1', activity_type: 'DIV', net_amount: '2', qty: '2', per_share_amount: '1' },
      { ...paid, id: '2', activity_type: 'DIVNRA', net_amount: '-0.3' },
    )
    account.cash += 1.7
    await follow()
    await payDividends(services)
    expect(await ada.readBooked()).toMatchObject({ cash: '300' })
    clock.forward(86_400_000)
    for (const _again of [1, 2]) {
      await follow()
      await payDividends(services)
    }
    const row = await database()
      .kysely.selectFrom('dividend')
      .select(['amount', 'withheld', 'status'])
      .where('account_id', '=', ada.accountId)
      .execute()
    expect(row).toEqual([{ amount: 170n, withheld: 30n, status: 'paid' }])
    expect(await ada.readBooked()).toMatchObject({ cash: '301.7' })
    expect(await bob.readBooked()).toMatchObject({ cash: '400' })
    expect(account.cash).toBe(0)
    await sumsToZero()
  })

  it('stop a holding that the broker splits or counts otherwise, and no other', async () => {
    const [ada, bob] = [await newInvestor('Ada'), await newInvestor('Bob')]
    for (const person of [ada, bob]) await person.call(openAccount, answers)
    await ada.place({ notional: '200' })
    const account = await ada.atBroker()
    server.activities.push({
      ...{
        account_id: account.id,
        id: 's1',
        activity_type: 'SPLIT',
        symbol: 'VTI',
        qty: '2',
        net_amount: '0',
      },
      date: clock().toISOString().slice(0, 10),
    })
    account.shares = 4
    await follow()
    const alarms = (await openAlarms(database())).filter(({ objectId }) => objectId.startsWith(ada.accountId))
    expect(alarms.map(({ objectId, reason }) => [objectId, reason]).sort()).toEqual([
      [`${ada.accountId}:VTI`, 'activity_split_s1'],
      [`${ada.accountId}:VTI`, 'holding_differs'],
    ])
    await expect(ada.place({ side: 'sell', notional: '50' })).rejects.toMatchObject(
      expectRejection('holding_stopped'),
    )
    expect(await bob.place({ notional: '10' })).toMatch(/^ord_/)
  })
})

const buildIdentity = (given_name: string) => ({
  ...{ given_name, family_name: 'Lovelace', date_of_birth: '1990-12-10', tax_id: '1' },
  ...{ tax_id_type: 'DEU_TAX_ID' as const, country_of_tax_residence: 'DEU' },
  funding_source: ['savings' as const],
})
