/** Programs that know nothing of payments buy through `bursar proxy`: at most once for each answer, within its limits. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as tlsConnect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { requestJson } from '../../journeys/people.ts'
import { type FlakySellers, startFlakySellers } from '../../rails/buying/flaky-sellers.ts'
import { hasAnvil } from '../../rails/selling/x402/world.ts'
import { bursar } from '../bursar.ts'
import {
  curl,
  newBuyer,
  openTunnel,
  type ProxyAgent,
  type RunningProxy,
  startProgram,
  startTestProxy,
} from './scene.ts'
import { makeCertificates, PRICE, startOrigins, type TestOrigins } from './sellers.ts'

const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })

describe.skipIf(!hasAnvil())('buying through the proxy', () => {
  const certificates = makeCertificates()
  let gateway: Gateway
  let origins: TestOrigins
  let flaky: FlakySellers
  let buyer: ProxyAgent
  let proxy: RunningProxy

  beforeAll(async () => {
    gateway = await startGateway({ NODE_EXTRA_CA_CERTS: certificates.ca })
    const { body } = await requestJson(gateway.origin, 'GET', '/sandbox/credentials')
    const { rpcUrl } = credentials.parse(body).chain
    origins = await startOrigins(certificates, rpcUrl)
    flaky = await startFlakySellers(rpcUrl)
    buyer = await newBuyer(gateway.origin)
    proxy = await startTestProxy(buyer, gateway.origin, '--ca', certificates.ca)
  }, 180_000)
  afterAll(async () => {
    await proxy?.stop()
    await flaky?.close()
    await origins?.close()
    await gateway?.stop()
  }, 60_000)

  const measure = async (work: () => Promise<unknown>) => {
    const before = await origins.received()
    await work()
    return (await origins.received()) - before
  }
  const openFiles = () =>
    readdirSync(join(buyer.home, '.bursar/proxy'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      /open\/.*\.json$/.test(name),
    )
  const settleOpen = () => expect.poll(openFiles, { timeout: 20_000 }).toEqual([])

  it('gives what was bought, and says what it cost', async () => {
    const paid = await measure(async () => {
      const { out } = await curl(proxy.env, '-i', `${origins.http}/report`)
      expect(out).toMatch(/^HTTP\/1.1 200 OK/)
      expect(out).toMatch(/bursar-purchase: buy_\w+/i)
      expect(out).toMatch(/bursar-charged: 0\.001 USDC/i)
      expect(out).not.toMatch(/bursar-problem/i)
      expect(out).toContain('"report":"sunny"')
    })
    expect(paid).toBe(PRICE)
    await settleOpen()
  })

  it('buys over HTTPS, and POSTs', async () => {
    const paid = await measure(async () => {
      expect((await curl(proxy.env, `${origins.https}/report`)).out).toContain('"report":"sunny"')
      const sent = { 'content-type': 'application/json' }
      const { out } = await curl(
        proxy.env,
        ...['--json', JSON.stringify({ question: 'how?' }), `${origins.https}/report`],
      )
      expect([sent, JSON.parse(out)]).toEqual([sent, { bytes: 19, hash: expect.any(String) }])
    })
    expect(paid).toBe(2n * PRICE)
  })

  it('sends a megabyte again after a 402', async () => {
    const body = randomBytes(1_000_000)
    const file = join(buyer.home, 'body')
    writeFileSync(file, body)
    const { out } = await curl(
      proxy.env,
      ...['-i', '-X', 'POST', '--data-binary', `@${file}`, '-H', 'content-type: application/x-bin'],
      `${origins.http}/report`,
    )
    expect(out).toContain(createHash('sha256').update(body).digest('hex'))
  })

  it('passes the 402 on for a body over 4 MiB, and says why', async () => {
    const file = join(buyer.home, 'long')
    writeFileSync(file, randomBytes(5_000_000))
    const paid = await measure(async () => {
      for (const origin of [origins.http, origins.https]) {
        const { out } = await curl(proxy.env, '-i', '--data-binary', `@${file}`, `${origin}/report`)
        expect(out).toMatch(/HTTP\/1.1 402 [\s\S]*payment-required: [\s\S]*bursar-problem: body_too_long/i)
      }
    })
    expect(paid).toBe(0n)
  })

  it('passes a 402 on that costs too much, and one that is no known challenge', async () => {
    const paid = await measure(async () => {
      const dear = await curl(proxy.env, '-i', `${origins.http}/dear`)
      expect(dear.out).toMatch(/HTTP\/1.1 402 [\s\S]*payment-required: [\s\S]*bursar-problem: max_price/i)
      const other = await curl(proxy.env, '-i', `${origins.http}/other-402`)
      expect(other.out).toMatch(/HTTP\/1.1 402 [\s\S]*x-own: kept[\s\S]*bursar-problem: terms_not_payable/i)
      expect(other.out).toContain('pay by cheque')
      const long = await curl(proxy.env, `${origins.http}/long-challenge`)
      expect(long.out).toHaveLength(200_000)
    })
    expect(paid).toBe(0n)
    await settleOpen()
  })

  it('leaves alone what a program pays by itself, and credentials that purchases cannot carry', async () => {
    for (const field of ['X-PAYMENT: abc', 'Authorization: Basic abc'])
      expect((await curl(proxy.env, '-i', '-H', field, `${origins.http}/report`)).out).toMatch(
        /HTTP\/1.1 402 [\s\S]*bursar-problem: \w+/i,
      )
  })

  it('answers 502 for what was paid and not delivered, and serves the repeat from the same purchase', async () => {
    const run = randomUUID()
    const first = await curl(proxy.env, '-i', `${flaky.origin}/third/${run}`)
    expect(first.out).toMatch(/HTTP\/1.1 502 [\s\S]*bursar-problem: undelivered/i)
    const problem = z
      .object({ code: z.literal('undelivered'), purchaseId: z.string(), hint: z.string() })
      .parse(JSON.parse(first.out.split('\r\n\r\n')[1] ?? ''))
    let answer = ''
    for (let tries = 0; tries < 4 && !answer.includes(' 200 '); tries += 1)
      answer = (await curl(proxy.env, '-i', `${flaky.origin}/third/${run}`)).out
    expect(answer).toMatch(/HTTP\/1.1 200/)
    expect(answer).toContain(problem.purchaseId)
    await settleOpen()
  })

  it('remembers what was paid while the gateway refuses the key', async () => {
    const demoted = await newBuyer(gateway.origin)
    const own = await startTestProxy(demoted, gateway.origin)
    const ask = async () => (await curl(own.env, '-i', `${flaky.origin}/third/demoted`)).out
    expect(await ask()).toMatch(/ 502 [\s\S]*bursar-problem: undelivered/i)
    const scopes = ['wallets:read']
    const { status } = await demoted.owner.send('PATCH', `/api/agents/keys/${demoted.agentId}`, { scopes })
    expect(status).toBe(200)
    expect(await ask()).toMatch(/ 402 [\s\S]*bursar-problem: insufficient_scope/i)
    await own.stop()
    const restarted = await startTestProxy(demoted, gateway.origin)
    expect(restarted.output()).toContain('Spent with this key: 0.001 of 1.00 USD')
    await restarted.stop()
  })

  it('pays once when the program was killed before it had its answer, and repeats', async () => {
    const paid = await measure(async () => {
      const lost = startProgram('curl', ['-sS', `${origins.https}/slow?killed`], proxy.env)
      await expect.poll(() => openFiles().length, { timeout: 20_000 }).toBe(1)
      await pause(500)
      lost.process.kill('SIGKILL')
      await lost.ended
      expect((await curl(proxy.env, '-i', `${origins.https}/slow?killed`)).out).toMatch(/ 200 OK[\s\S]*slow/)
    })
    expect(paid).toBe(PRICE)
    await settleOpen()
  })

  it('pays once when a program gives up and tries again, with other headers', async () => {
    const paid = await measure(async () => {
      const lost = await curl(proxy.env, '--max-time', '1', '-H', 'x-try: 0', `${origins.http}/slow?timeout`)
      expect(lost.code).toBe(28)
      const { out } = await curl(proxy.env, '-i', '-H', 'x-try: 1', `${origins.http}/slow?timeout`)
      expect(out).toMatch(/ 200 OK[\s\S]*slow/)
    })
    expect(paid).toBe(PRICE)
    await settleOpen()
  })

  it('gives no program what another login has bought', async () => {
    const path = `${origins.http}/slow?login`
    const paid = await measure(async () => {
      const login = (name: string) => ['-H', `Authorization: Bearer ${name}`]
      const lost = await curl(proxy.env, '--max-time', '1', ...login('alice'), path)
      expect(lost.code).toBe(28)
      const answers = [await curl(proxy.env, '-i', ...login('bob'), path)]
      answers.push(await curl(proxy.env, '-i', ...login('alice'), path))
      const ids = answers.map(({ out }) => /bursar-purchase: (\w+)/i.exec(out)?.[1])
      expect(new Set(ids).size).toBe(2)
    })
    expect(paid).toBe(2n * PRICE)
    await settleOpen()
  })

  it('gives what was bought, and pays once, where its folder is lost meanwhile', async () => {
    const own = await newBuyer(gateway.origin)
    const other = await startTestProxy(own, gateway.origin)
    const home = join(own.home, '.bursar/proxy')
    const findOpen = () =>
      readdirSync(home, { recursive: true, encoding: 'utf8' }).find((name) => /\/open\/.*json$/.test(name))
    const paid = await measure(async () => {
      const asked = curl(other.env, '-i', `${origins.http}/slow?lost`)
      await expect.poll(findOpen, { timeout: 20_000 }).toBeDefined()
      const folder = join(home, dirname(findOpen() ?? ''))
      renameSync(folder, `${folder}-lost`)
      expect((await asked).out).toMatch(/ 200 OK[\s\S]*slow/)
      const { out } = await curl(other.env, '-i', `${origins.http}/slow?lost`)
      expect(out).toMatch(/ 402 [\s\S]*bursar-problem: storage_failed/i)
    })
    expect(paid).toBe(PRICE)
    await other.stop()
  })

  it.each(['http', 'https'] as const)(
    'pays once for a program that is killed with its answer unread, over %s',
    async (scheme) => {
      const path = `/report?unread-${scheme}`
      const paid = await measure(async () => {
        const url = new URL(`${origins[scheme]}${path}`)
        const isSecure = scheme === 'https'
        const raw = isSecure ? await openTunnel(proxy, url.host) : connect(proxy.port, '127.0.0.1')
        const socket = isSecure ? tlsConnect({ socket: raw, rejectUnauthorized: false }) : raw
        const authorization = Buffer.from(`bursar:${proxy.token}`).toString('base64')
        socket.write(
          `GET ${isSecure ? path : url.href} HTTP/1.1\r\nHost: ${url.host}\r\nProxy-Authorization: Basic ${authorization}\r\n\r\n`,
        )
        // Nobody reads: the system keeps what comes.
        if (isSecure) await once(socket, 'secureConnect')
        raw.pause()
        const before = proxy.output().length
        await expect.poll(() => proxy.output().slice(before), { timeout: 20_000 }).toContain('bought for')
        await pause(200)
        raw.resetAndDestroy()
        await pause(200)
        expect(openFiles()).toHaveLength(1)
        expect((await curl(proxy.env, '-i', url.href)).out).toMatch(/ 200 OK[\s\S]*sunny/)
      })
      expect(paid).toBe(PRICE)
      await settleOpen()
    },
  )

  it('waits for the owner where the policy asks, and buys once', async () => {
    const asking = await newBuyer(gateway.origin, { approval: { above: '0.10' } })
    const own = await startTestProxy(asking, gateway.origin, '--max-price', '0.60')
    const paid = await measure(async () => {
      const ask = async () => (await curl(own.env, '-i', `${origins.http}/dear`)).out
      expect(await ask()).toMatch(/ 402 [\s\S]*bursar-problem: approval_required/i)
      expect(await ask()).toMatch(/ 402 [\s\S]*bursar-problem: approval_required/i)
      const { body } = await asking.owner.send('GET', '/api/approvals')
      const { approvals } = z.object({ approvals: z.array(z.object({ approvalId: z.string() })) }).parse(body)
      expect(approvals).toHaveLength(1)
      await asking.owner.send('POST', `/api/approvals/${approvals[0]?.approvalId}`, { decision: 'approve' })
      await expect.poll(ask, { timeout: 30_000 }).toMatch(/ 200 OK[\s\S]*"report":"dear"/)
    })
    await own.stop()
    expect(paid).toBe(500n * PRICE)
  })

  it('pays once when the proxy is killed between a purchase and its answer', async () => {
    const paid = await measure(async () => {
      const lost = curl(proxy.env, `${origins.http}/slow?proxy-killed`)
      await expect.poll(() => openFiles().length, { timeout: 20_000 }).toBe(1)
      await pause(700)
      await proxy.kill()
      expect((await lost).code).not.toBe(0)
      const [file = ''] = openFiles()
      const path = join(buyer.home, '.bursar/proxy', file)
      expect(readFileSync(path, 'utf8')).toContain('"chargedMicros":null')
      expect(statSync(path).mode & 0o077).toBe(0)
      proxy = await startTestProxy(buyer, gateway.origin, '--ca', certificates.ca)
      const { out } = await curl(proxy.env, '-i', `${origins.http}/slow?proxy-killed`)
      expect(out).toMatch(/ 200 OK[\s\S]*slow/)
    })
    expect(paid).toBe(PRICE)
    await settleOpen()
  })

  it('buys one answer for each of several equal requests at a time', async () => {
    const paid = await measure(async () => {
      const answers = await Promise.all(
        [1, 2, 3].map(() => curl(proxy.env, '-i', `${origins.http}/slow?equal`)),
      )
      const ids = answers.map(({ out }) => /bursar-purchase: (\w+)/i.exec(out)?.[1])
      expect(new Set(ids).size).toBe(3)
    })
    expect(paid).toBe(3n * PRICE)
  })

  it('pays once for requests with one Bursar-Idempotency-Key, together and later', async () => {
    const key = ['-H', `Bursar-Idempotency-Key: ${randomUUID()}`]
    const paid = await measure(async () => {
      const ask = () => curl(proxy.env, '-i', ...key, `${origins.http}/slow?named`)
      const answers = [...(await Promise.all([ask(), ask()])), await ask()]
      expect(new Set(answers.map(({ out }) => /bursar-purchase: (\w+)/i.exec(out)?.[1])).size).toBe(1)
      const other = await curl(proxy.env, '-i', ...key, `${origins.http}/report`)
      expect(other.out).toMatch(/ 402 [\s\S]*bursar-problem: idempotency_key_reused/i)
    })
    expect(paid).toBe(PRICE)
    const seen = await curl(proxy.env, ...key, `${origins.http}/echo`)
    expect(seen.out).not.toMatch(/bursar|proxy-/i)
  })

  it('passes the 402 on with the reason of the policy', async () => {
    const strict = await newBuyer(gateway.origin, { categories: { allow: ['transfer'] } })
    const own = await startTestProxy(strict, gateway.origin)
    try {
      const { out } = await curl(own.env, '-i', `${origins.http}/report`)
      expect(out).toMatch(/ 402 [\s\S]*bursar-problem: policy_denied/i)
    } finally {
      await own.stop()
    }
  })

  it('stops at its budget, which restarts do not renew', async () => {
    const poor = await newBuyer(gateway.origin)
    const limits = ['--budget', '0.0025']
    let own = await startTestProxy(poor, gateway.origin, ...limits)
    const paid = await measure(async () => {
      // More at a time than the budget would cover at their highest price.
      const answers = await Promise.all([1, 2].map((n) => curl(own.env, '-i', `${origins.http}/report?${n}`)))
      for (const { out } of answers) expect(out).toMatch(/ 200 OK/)
      await own.stop()
      own = await startTestProxy(poor, gateway.origin, ...limits)
      expect(own.output()).toContain('0.002 of 0.0025 USD')
      const { out } = await curl(own.env, '-i', `${origins.http}/report?3`)
      expect(out).toMatch(/ 402 [\s\S]*bursar-problem: budget/i)
    })
    await own.stop()
    expect(paid).toBe(2n * PRICE)
  })

  it('passes the 402 on while the gateway cannot be reached', async () => {
    const own = await startTestProxy(await newBuyer(gateway.origin), 'http://127.0.0.1:9', '--allow-private')
    const { out } = await curl(own.env, '-i', `${origins.http}/report`)
    await own.stop()
    expect(out).toMatch(/ 402 [\s\S]*bursar-problem: gateway_unreachable/i)
  })

  it('gives an answer of a megabyte whole', async () => {
    const { out } = await curl(proxy.env, '-i', `${origins.http}/long`)
    expect(out.length).toBeGreaterThan(1_000_000)
  })

  it('is there for the program of `bursar run`, and ends with it', async () => {
    const paid = await measure(async () => {
      const { code, out, err } = await bursar(
        [
          ...['run', '--url', gateway.origin, '--key', buyer.keyFile, '--budget', '0.50'],
          ...['--', 'sh', '-c', `curl -sS ${origins.http}/report; echo; echo $HTTP_PROXY`],
        ],
        { HOME: buyer.home },
      )
      expect([code, err]).toEqual([0, expect.stringContaining('spent 0.001 of 0.5 USD')])
      expect(out).toContain('"report":"sunny"')
      const url = /http:\/\/\S+/.exec(out)?.[0] ?? ''
      await expect(fetch(`http://127.0.0.1:${new URL(url).port}/`)).rejects.toThrow()
    })
    expect(paid).toBe(PRICE)
    const bare = await bursar(
      [
        ...['run', '--url', gateway.origin, '--key', buyer.keyFile, '--budget', '0.50', '--no-proxy'],
        ...['--', 'sh', '-c', 'echo "[$HTTP_PROXY]"'],
      ],
      { HOME: buyer.home },
    )
    expect(bare.out).toContain('[]')
  })
})
