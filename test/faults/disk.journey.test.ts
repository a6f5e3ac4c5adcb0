/**
 * A full disk under the embedded database: writes are refused with 503, acknowledged data stays, and the gateway
 * recovers once there is space. Runs on a small file system of its own, and is skipped if mounting one is not
 * permitted.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { expectUnavailable, sendJson } from './ask.ts'
import { type Client, createClient } from './transfers.ts'

const SIZE = '160m'

/** A directory on a file system of {@link SIZE}; undefined if this user may not mount one. */
const mounted = (() => {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'bursar-test', directory], {
      stdio: 'ignore',
    })
    return directory
  } catch {
    rmdirSync(directory)
    return undefined
  }
})()

describe.skipIf(mounted === undefined)(
  'a gateway with a full disk (needs permission to mount a tmpfs)',
  () => {
    const directory = mounted ?? ''
    const ballast = join(directory, 'ballast')
    let gateway: Gateway
    let client: Client
    let env: Record<string, string>
    const acknowledged = new Map<string, unknown>()

    beforeAll(async () => {
      env = {
        DATA_DIR: join(directory, 'data'),
        CHAIN: 'simulated',
        RATE_MUTATIONS: '100000/60',
        LOG_LEVEL: 'warn',
      }
      gateway = await startGateway(env)
      client = await createClient(gateway.origin)
    }, 60_000)
    afterAll(async () => {
      if (gateway?.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
      if (mounted === undefined) return
      execFileSync('umount', [mounted])
      rmSync(mounted, { recursive: true, force: true })
    })

    const cards = async () =>
      z
        .object({ cards: z.array(z.object({ id: z.string() })) })
        .parse((await client.get('/api/cards?limit=100')).body)
        .cards.map(({ id }) => id)
    const issueCard = async (name: string) => {
      const answer = await client.post('/api/cards', { nickname: name }, name)
      if (answer.status === 200)
        acknowledged.set(name, z.object({ id: z.string() }).loose().parse(answer.body).id)
      return answer
    }
    const fill = () => {
      const { bavail, bsize } = statfsSync(directory)
      writeFileSync(ballast, Buffer.alloc(bavail * bsize - 64 * 1024))
    }

    it('answers 503, keeps acknowledged data, and recovers once there is space', async () => {
      for (let index = 0; index < 5; index += 1) expect((await issueCard(`before-${index}`)).status).toBe(200)
      fill()
      // A cached readiness result may be served for a moment longer.
      let refused = await issueCard('full-0')
      for (let index = 1; index < 400 && refused.status === 200; index += 1)
        refused = await issueCard(`full-${index}`)
      expectUnavailable(refused, 'provider_unavailable')
      expectUnavailable(await client.transfer('1', 'full-transfer'))
      expect((await sendJson(`${gateway.origin}/healthz`)).status).toBe(200)

      rmSync(ballast)
      await expect.poll(async () => (await issueCard('after')).status, { timeout: 20_000 }).toBe(200)
      expect((await client.transferUntilFinal('1', 'full-transfer')).body).toMatchObject({
        status: 'confirmed',
      })
      expect(await client.usdc()).toEqual({ amount: '999', held: '0' })
      for (const [name, id] of acknowledged)
        expect([name, (await issueCard(name)).body.id]).toEqual([name, id])

      expect(await gateway.stop()).toBe(0)
      gateway = await startGateway(env)
      client = await createClient(gateway.origin)
      expect(await client.usdc()).toEqual({ amount: '999', held: '0' })
      for (const [name, id] of acknowledged)
        expect([name, (await issueCard(name)).body.id]).toEqual([name, id])
      expect((await cards()).length).toBeGreaterThan(0)
    }, 120_000)
  },
)
