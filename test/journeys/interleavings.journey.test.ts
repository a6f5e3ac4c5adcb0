/**
 * Random interleavings of everything that moves money, with owners who use keys of their own, lost and replaced
 * transactions, and a gateway that is killed meanwhile. In every order, spendable and held money is on the chain or
 * booked as a debt, the gateway has no unbooked loss, and everything reaches a final state.
 */
import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { randomToken } from '../../src/core/base/ids.ts'
import { signBankingWebhook } from '../../src/providers/banking/signature.ts'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import type { Connection, Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { expectRecomputed } from '../records/decisions/verify-bundle.ts'
import { type Gateway, startGateway } from './gateway.ts'
import {
  newOutsider,
  type Outsider,
  type Owner,
  openOwner,
  type Race,
  readAddress,
  stableTokens,
  tokenBalance,
} from './keyed-owners.ts'
import { newGuest, type Person, requestJson } from './people.ts'

/** `npm run interleavings` makes 2,000. */
const STEPS = Number(process.env.INTERLEAVING_STEPS ?? 300)
const LANES = 10
const KILLS = 4
/** Dropped transactions, alternating with replaced blocks. */
const CHAIN_FAULTS = 4
const seed = Number(process.env.INTERLEAVING_SEED ?? Math.floor(performance.timeOrigin) % 1_000_000)

const credentials = z.object({
  lithicWebhookSecret: z.string(),
  bridgeWebhookPrivateKey: z.string(),
})
/** Entries that remain until the owner has money or a person decides: booked and shown, without a hold. */
const longLived = new Set(['approvals', 'debts', 'settlements'])
const gauges = /^bursar_open\{[^}]*kind="(\w+)"[^}]*\} (\d+)$/gm

/** Pseudo-random numbers, equal for equal seeds. */
function randomFrom(start: number): (below: number) => number {
  let state = start
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

interface Purchase {
  readonly token: string
  readonly card: string
  readonly cents: number
  readonly events: { token: string; type: string; amount: number; result: string }[]
}

/** A failure's seed is in the test's name; INTERLEAVING_SEED and INTERLEAVING_STEPS repeat it. */
describe.skipIf(testServerUrl === undefined)('interleavings', () => {
  const random = randomFrom(seed)
  const oneOf = <Item>(items: readonly Item[]): Item => {
    const item = items[random(items.length)]
    if (item === undefined) throw new Error('the list is empty')
    return item
  }
  let node: AnvilProcess
  let env: Record<string, string>
  let gateway: Gateway
  let open: () => Promise<Database>
  let drop = async () => {}
  let secret = ''
  let bankKey: ReturnType<typeof createPrivateKey>
  const guests: Person[] = []
  const owners: Owner[] = []
  const attackers: Outsider[] = []
  const cards = new Map<Person, string>()
  const accounts = new Map<Person, string>()
  const purchases: Purchase[] = []
  const deposits: { id: string; account: string; amount: string }[] = []

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    const shared = { CHAIN_RPC_URL: node.url, LOG_LEVEL: 'error' }
    const names = [
      'MUTATIONS',
      'GASLESS',
      'FX',
      'MESSAGES',
      'STOPS',
      'OTP_RESEND',
      'OTP_DESTINATION',
      'OTP_IP',
    ]
    const rates = Object.fromEntries(names.map((rate) => [`RATE_${rate}`, '1000000/60']))
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    env = { ...shared, ...rates, DATABASE_URL: created.url }
    open = () => openPostgres({ url: created.url })
    gateway = await startGateway(env)
    env.PORT = new URL(gateway.origin).port
    const settings = credentials.parse(
      (await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body,
    )
    secret = settings.lithicWebhookSecret
    bankKey = createPrivateKey(settings.bridgeWebhookPrivateKey)
    for (let count = 0; count < 6; count += 1) guests.push(await newGuest(gateway.origin))
    for (let count = 0; count < 4; count += 1) {
      const owner = await openOwner(gateway.origin, node.url, `owner-${count}-${seed}@example.com`)
      // Two owners hand over their wallets now, two in the middle of the run.
      if (count < 2) await owner.handOver()
      owners.push(owner)
    }
    for (let count = 0; count < 3; count += 1) attackers.push(await newOutsider(gateway.origin, node.url))
    for (const person of guests) {
      const { body: listed } = await person.send('GET', '/api/cards')
      cards.set(
        person,
        z.looseObject({ cards: z.array(z.looseObject({ id: z.string() })).min(1) }).parse(listed).cards[0]
          ?.id ?? '',
      )
      const { body: banks } = await person.send('GET', '/api/banking')
      accounts.set(
        person,
        z.looseObject({ accounts: z.array(z.looseObject({ id: z.string() })).min(1) }).parse(banks)
          .accounts[0]?.id ?? '',
      )
      await person.send('POST', '/api/cards/settings', {
        cardId: cards.get(person),
        priority: oneOf([['USDC'], ['USDC', 'USD'], ['EURC', 'USDC']]),
      })
    }
    for (const { person } of owners) {
      const { body } = await person.send('POST', '/api/cards', {
        limits: { daily: '5000', perPurchase: '5000' },
      })
      const card = z.looseObject({ id: z.string() }).safeParse(body)
      if (card.success) cards.set(person, card.data.id)
    }
  }, 180_000)
  afterAll(async () => {
    if (gateway?.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
    await node?.stop()
    await drop()
  }, 60_000)

  const amount = (most: number) => `${random(most)}.${String(1 + random(99)).padStart(2, '0')}`
  const allPersons = () => [...guests, ...owners.map(({ person }) => person)]
  const anyAddress = async () =>
    random(4) === 0 ? (attackers[0]?.address ?? '') : readAddress(oneOf(allPersons()))
  const hook = async (provider: 'lithic' | 'bridge', id: string, message: object) => {
    const body = JSON.stringify(message)
    const signed =
      provider === 'lithic'
        ? signWebhook({ id, body, at: new Date() }, secret)
        : { 'x-webhook-signature': signBankingWebhook(body, { key: bankKey, at: new Date() }) }
    // Providers redeliver a webhook that was not accepted.
    for (let tries = 0; tries < 40; tries += 1) {
      const answer = await fetch(`${gateway.origin}/api/webhooks/${provider}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...signed },
        body,
      }).catch(() => undefined)
      const text = await answer?.text().catch(() => undefined)
      if (answer !== undefined && answer.status < 500 && text !== undefined) return text
      await sleep(250)
    }
    throw new Error(`webhook ${id} was never accepted`)
  }
  const sendCardEvent = (purchase: Purchase, status: string) =>
    hook('lithic', `${purchase.token}:${purchase.events.length}:${status}`, {
      event_type: 'card_transaction.updated',
      token: purchase.token,
      card_token: purchase.card,
      status,
      events: purchase.events,
    })
  const event = (purchase: Purchase, type: string, cents: number) => {
    const token = `${purchase.token}:${type}:${purchase.events.length}`
    purchase.events.push({ token, type, amount: cents, result: 'APPROVED' })
  }
  const newPurchase = (): Purchase => {
    const card = oneOf([...cards.values()])
    return { token: `buy-${randomToken(9)}`, card, cents: 100 + random(15_000), events: [] }
  }
  const authorize = async () => {
    const purchase = newPurchase()
    const answer = await hook('lithic', purchase.token, {
      event_type: 'card_authorization.approval_request',
      token: purchase.token,
      status: 'AUTHORIZATION',
      amount: purchase.cents,
      card: { token: purchase.card },
      merchant: { acceptor_id: 'SHOP', descriptor: 'Shop', mcc: '5411', country: 'USA' },
      pos: { entry_mode: { pan: 'ECOMMERCE' } },
    })
    event(purchase, 'AUTHORIZATION', purchase.cents)
    if (!answer.includes('"APPROVED"')) return false
    purchases.push(purchase)
    return true
  }
  const deposit = async () => {
    const account = oneOf([...accounts.values()])
    const made = { id: `deposit-${randomToken(9)}`, account, amount: amount(40) }
    for (const state of ['funds_received', 'payment_submitted', 'payment_processed'])
      await depositState(made, state)
    deposits.push(made)
    return true
  }
  const depositState = (
    { id, account, amount: paid }: { id: string; account: string; amount: string },
    state: string,
  ) =>
    hook('bridge', `${id}:${state}`, {
      api_version: 'v0',
      event_id: `${id}:${state}`,
      event_category: 'virtual_account.activity',
      event_type: 'updated.status_transitioned',
      event_object_id: id,
      event_object_status: state,
      event_object: { virtual_account_id: account, amount: paid },
    })
  const take = <Item>(items: Item[]) => items.splice(random(items.length), 1)[0]

  const isSuccess = async (pendingResponse: Promise<{ status: number }>) =>
    (await pendingResponse).status === 200
  const clear = async () => {
    const purchase = take(purchases)
    if (purchase === undefined) return false
    const { cents } = purchase
    event(purchase, 'CLEARING', oneOf([cents, cents, Math.ceil(cents / 2), cents + 5_000, cents * 20]))
    await sendCardEvent(purchase, 'SETTLED')
    if (random(4) !== 0) return true
    event(purchase, 'RETURN', -Math.ceil(cents / 3))
    await sendCardEvent(purchase, 'SETTLED')
    return true
  }
  const forceClear = async () => {
    const purchase = newPurchase()
    event(purchase, 'CLEARING', purchase.cents)
    await sendCardEvent(purchase, 'SETTLED')
    return true
  }
  const reverse = async () => {
    const purchase = take(purchases)
    if (purchase === undefined) return false
    event(purchase, 'AUTHORIZATION_REVERSAL', -purchase.cents)
    await sendCardEvent(purchase, 'VOIDED')
    return true
  }
  /** Sends another amount, or an earlier state, for a deposit that was already paid out. */
  const contradictDeposit = async () => {
    if (deposits.length === 0) return false
    const { id, account, amount: paid } = oneOf(deposits)
    const contradiction = oneOf([`${paid}0000`, '0.00', `-${paid}`, '1e300', paid])
    await hook('bridge', `${id}:lie:${randomToken(6)}`, {
      api_version: 'v0',
      event_id: `${id}:lie:${randomToken(6)}`,
      event_category: 'virtual_account.activity',
      event_type: 'updated.status_transitioned',
      event_object_id: id,
      event_object_status: oneOf(['payment_processed', 'funds_received', 'payment_submitted']),
      event_object: { virtual_account_id: account, amount: contradiction },
    })
    return true
  }
  /** Repeats a card transaction with other amounts, another card, or its events reversed. */
  const contradictPurchase = async () => {
    if (purchases.length === 0) return false
    const purchase = oneOf(purchases)
    const contradiction = {
      ...purchase,
      card: oneOf([purchase.card, ...cards.values()]),
      events: purchase.events
        .map((settings) => ({
          ...settings,
          amount: oneOf([settings.amount, settings.amount * 1_000, -settings.amount]),
        }))
        .reverse(),
    }
    await hook('lithic', `${purchase.token}:lie:${randomToken(6)}`, {
      event_type: 'card_transaction.updated',
      token: contradiction.token,
      card_token: contradiction.card,
      status: 'AUTHORIZATION',
      events: contradiction.events,
    })
    return true
  }
  const returnDeposit = async () => {
    const made = take(deposits)
    if (made === undefined) return false
    await depositState(made, 'refunded')
    return true
  }
  const send = async () =>
    oneOf(guests).send(
      'POST',
      '/api/wallets/transfer',
      { destination: await anyAddress(), amount: amount(30), signature: 'sandbox' },
      { 'idempotency-key': randomToken(9) },
    )
  const order = () =>
    oneOf(guests).send('POST', '/api/investing/order', {
      symbol: oneOf(['VTI', 'AAPL']),
      side: oneOf(['buy', 'buy', 'sell']),
      notional: `${1 + random(20)}`,
    })
  const chooseRace = (): Race => oneOf(['none', 'none', 'tiny', 'cancel'])
  /** Steps with their weights. */
  const steps = new Map<string, { weight: number; work: () => Promise<boolean> }>([
    ['transfer', { weight: 14, work: () => isSuccess(send()) }],
    [
      'signed transfer',
      {
        weight: 8,
        work: async () =>
          isSuccess(oneOf(owners).transfer({ destination: await anyAddress(), amount: amount(20) })),
      },
    ],
    ['hand-over', { weight: 2, work: () => isSuccess(oneOf(owners).handOver()) }],
    [
      'token transfer by the owner alone',
      {
        weight: 3,
        work: async () => {
          await oneOf(owners).moveAlone(await anyAddress(), BigInt(1 + random(30_000_000)))
          return true
        },
      },
    ],
    [
      'nonce spent on an empty call',
      {
        weight: 3,
        work: async () => {
          const destination = await anyAddress()
          await oneOf(owners).spendNonceThenTransfer({ destination, amount: amount(20) })
          return true
        },
      },
    ],
    [
      'relay',
      { weight: 8, work: () => isSuccess(oneOf(attackers).relay(oneOf(guests), { race: chooseRace() })) },
    ],
    ['quote', { weight: 8, work: () => isSuccess(oneOf(attackers).buyQuote({ race: chooseRace() })) }],
    ['authorization', { weight: 14, work: authorize }],
    ['clearing', { weight: 8, work: clear }],
    ['clearing without an authorization', { weight: 3, work: forceClear }],
    ['reversal', { weight: 3, work: reverse }],
    ['deposit', { weight: 5, work: deposit }],
    ['returned deposit', { weight: 2, work: returnDeposit }],
    ['contradicted deposit', { weight: 2, work: contradictDeposit }],
    ['contradicted purchase', { weight: 2, work: contradictPurchase }],
    ['order', { weight: 4, work: () => isSuccess(order()) }],
  ])
  const deck = [...steps].flatMap(([step, { weight }]) => Array.from<string>({ length: weight }).fill(step))
  const successes = new Map<string, number>()
  const make = async (step: string) => {
    // A client that fails during a fault is ignored: the books are judged at the end.
    const isDone = await steps
      .get(step)
      ?.work()
      .catch(() => false)
    if (isDone !== false) successes.set(step, (successes.get(step) ?? 0) + 1)
  }

  const rpc = (method: string, params: unknown[] = []) =>
    fetch(node.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    }).then((response) => response.json())
  const kill = async () => {
    const exited = once(gateway.process, 'exit')
    gateway.process.kill('SIGKILL')
    await exited
    gateway = await startGateway(env)
  }
  const refill = async ({ person }: Owner) =>
    requestJson(gateway.origin, 'POST', '/sandbox/faucet', {
      body: { address: await readAddress(person), token: 'USDC', amount: '2000' },
    })
  const reorganize = async () => {
    // Waits until blocks are observed before they are replaced, as on chains whose blocks outlast a poll.
    await sleep(2_500)
    await rpc('anvil_reorg', [1 + random(4), []])
  }
  const dropPending = async () => {
    await rpc('evm_setAutomine', [false])
    await sleep(400)
    await rpc('anvil_dropAllTransactions')
    await rpc('evm_mine')
    await rpc('evm_setAutomine', [true])
  }

  it(`keeps every obligation covered over ${STEPS} steps (seed ${seed})`, async () => {
    let done = 0
    const faults = new Map<number, () => Promise<void>>()
    for (let count = 1; count <= KILLS; count += 1)
      faults.set(Math.floor((count * STEPS) / (KILLS + 1)), kill)
    for (let count = 1; count <= CHAIN_FAULTS; count += 1)
      faults.set(
        Math.floor((count * STEPS) / (CHAIN_FAULTS + 1)) + 37,
        count % 2 === 0 ? dropPending : reorganize,
      )
    let fault = Promise.resolve()
    const lane = async () => {
      while (done < STEPS) {
        done += 1
        const due = faults.get(done)
        if (due !== undefined) fault = fault.then(due)
        await fault
        await make(oneOf(deck))
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    await fault
    // Few steps may leave out a rare kind, or meet it only during faults or once card payments took all that there was.
    const rare = [...steps.keys()].filter((kind) => !successes.has(kind))
    if (rare.length > 0) for (const owner of owners) await refill(owner)
    for (const kind of rare)
      for (let tries = 0; tries < 30 && !successes.has(kind); tries += 1) {
        await make(kind)
        await sleep(200)
      }
    for (const purchase of purchases.splice(0)) {
      event(purchase, 'AUTHORIZATION_EXPIRY', -purchase.cents)
      await sendCardEvent(purchase, 'EXPIRED')
    }
    // A transaction that the chain refuses now and may have included before stays open until it expires.
    try {
      await expect.poll(stillOpen, { timeout: 720_000, interval: 1_000 }).toEqual([])
    } catch (error) {
      await gateway.stop()
      const database = await open()
      const holds = await readHolds(database).finally(() => database.close())
      throw new Error(`Still open: ${holds.join('\n')}`, { cause: error })
    }
    // Transactions removed by a reorganization are resent while they are valid, as the `verifications` gauge shows;
    // then every wallet is checked twice.
    await sleep(25_000)
    await expect.poll(stillOpen, { timeout: 60_000, interval: 1_000 }).toEqual([])
    // Every kind of step has succeeded at least once.
    expect([...steps.keys()].filter((name) => (successes.get(name) ?? 0) === 0)).toEqual([])
    await gateway.stop()
    await expectRecomputed({ DATABASE_URL: env.DATABASE_URL ?? '' })
    const database = await open()
    try {
      expect((await trialBalance(database)).balanced).toBe(true)
      expect(await uncoveredWallets(database, node.url)).toEqual([])
      expect(await unbookedLosses(database, node.url)).toEqual([])
      expect(await lossesAboveFloat(database)).toEqual([])
    } finally {
      await database.close()
    }
  }, 1_500_000)

  const stillOpen = async () => {
    const text = await (await fetch(`${gateway.origin}/metrics`)).text()
    return [...text.matchAll(gauges)].flatMap(([, kind, count]) =>
      !longLived.has(kind ?? '') && count !== '0' ? [`${kind} ${count}`] : [],
    )
  }
})

/** Wallets whose available and held amounts exceed their chain balance plus the booked shortfall. */
async function uncoveredWallets(database: Connection, rpcUrl: string): Promise<string[]> {
  const { rows } = await sql<{ address: string; asset: string; booked: string; uncovered: string }>`
    select w.address, b.asset, sum(b.units)::text as booked, coalesce(max(s.uncovered), 0)::text as uncovered
    from wallet w join balance b on b.account in (w.account_id || ':base-sepolia:available', w.account_id || ':base-sepolia:held')
    left join wallet_shortfall s on s.account_id = w.account_id and s.token = b.asset
    group by 1, 2
    union all
    select w.escrow, b.asset, sum(b.units)::text, '0'
    from wallet w join balance b
      on b.account in (w.account_id || ':escrow.base-sepolia:available', w.account_id || ':escrow.base-sepolia:held')
    where w.escrow is not null group by 1, 2 order by 1, 2`.execute(database.kysely)
  const found: string[] = []
  for (const { address, asset, booked, uncovered } of rows) {
    const there = await tokenBalance(rpcUrl, asset, address)
    if (BigInt(booked) > there + BigInt(uncovered))
      found.push(
        `${address} ${asset}: booked ${booked}, on chain ${there}, uncovered ${uncovered}\n${await readMovements(database, address, asset)}`,
      )
  }
  return found
}

/** What still holds money, with what it was for, for diagnosing a failure. */
async function readHolds(database: Connection): Promise<string[]> {
  const { rows } = await sql<{ line: string }>`
    select concat_ws(' ', r.reserved_at, d.operation, r.source, r.asset, r.units, r.taken, d.facts, to_jsonb(t)) as line
    from reservation r join decision d on d.id = r.decision_id left join transfer t on t.decision_id = r.decision_id
    where r.status = 'reserved'
    union all select to_jsonb(c)::text from card_authorization c where c.status = 'pending'`.execute(
    database.kysely,
  )
  return rows.map(({ line }) => line)
}

/** The last movements of a wallet, for diagnosing a failure. */
async function readMovements(database: Connection, address: string, asset: string): Promise<string> {
  const { rows } = await sql<{ line: string }>`
    select t.at || ' ' || t.kind || ' ' || t.reference || ' ' || p.source || ' > ' || p.destination || ' ' || p.units as line
    from wallet w
    join posting p on (p.source like w.account_id || ':%' or p.destination like w.account_id || ':%') and p.asset = ${asset}
    join ledger_transaction t on t.id = p.transaction_id
    where w.address = ${address} order by t.at desc limit 60`.execute(database.kysely)
  return rows.map(({ line }) => line).join('\n')
}

/**
 * Accounts that owe more than the float for approved purchases which their wallets, after all, did not pay. What a merchant
 * takes beyond an approval is not promised.
 */
async function lossesAboveFloat(database: Connection): Promise<readonly object[]> {
  const { rows } = await sql<{ account_id: string; owed: string }>`
    select d.account_id, sum(d.units)::text as owed
    from debt d join card_settlement s on s.id = d.reference and d.kind = 'settlement'
    join card_authorization a on a.id = s.authorization_id
    where a.reason = 'approved' and a.cleared <= a.approved
    group by d.account_id having sum(d.units) > 5000`.execute(database.kysely)
  return rows
}

/** Addresses of the gateway that hold less than the ledger says they earned. */
async function unbookedLosses(database: Connection, rpcUrl: string): Promise<string[]> {
  const sumEarned = async (account: string, asset: string) => {
    const { rows } = await sql<{ units: string }>`
      select coalesce(sum(case when destination = ${account} then units else -units end), 0)::text as units
      from posting where asset = ${asset} and (destination = ${account} or source = ${account})`.execute(
      database.kysely,
    )
    return BigInt(rows[0]?.units ?? '0')
  }
  const sumSettled = async (asset: string) => {
    const { rows } = await sql<{ units: string }>`
      select coalesce(sum(t.units), 0)::text as units from transfer t
      where t.state = 'confirmed' and t.token = ${asset} and t.destination = ${stableTokens.treasury.toLowerCase()}`.execute(
      database.kysely,
    )
    return BigInt(rows[0]?.units ?? '0')
  }
  const found: string[] = []
  const income = await sumEarned('revenue:x402.fx', 'USDC')
  const received = await tokenBalance(rpcUrl, 'USDC', stableTokens.payTo)
  if (received < income) found.push(`x402: booked ${income}, received ${received}`)
  for (const asset of ['USDC', 'USDT', 'EURC', 'PYUSD']) {
    const [booked, there] = [
      await sumSettled(asset),
      await tokenBalance(rpcUrl, asset, stableTokens.treasury),
    ]
    if (there < booked) found.push(`cards: settled ${booked} ${asset}, received ${there}`)
  }
  return found
}
