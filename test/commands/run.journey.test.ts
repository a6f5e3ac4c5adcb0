/** `bursar run`: a program with a budget, as a user starts it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { sharedGateway } from '../journeys/gateway.ts'
import { enrollMfa, newGuest, type Person } from '../journeys/people.ts'
import { bursar, startBursar } from './bursar.ts'

const origin = sharedGateway()
const directory = mkdtempSync(join(tmpdir(), 'bursar-run-test-'))
const keyFile = join(directory, 'agent.json')
const scopes = ['wallets:read', 'wallets:transfer', 'agents:delegate']
const payee = `0x${'1'.repeat(40)}`
let owner: Person
let agentId: string

beforeAll(async () => {
  owner = await newGuest(origin)
  await enrollMfa(owner)
  await bursar(['agent', 'new', '--name', 'Orchestrator', '--out', keyFile])
  const { publicKey } = z.object({ publicKey: z.unknown() }).parse(JSON.parse(readFileSync(keyFile, 'utf8')))
  const { body } = await owner.send('POST', '/api/agents/keys', {
    name: 'Orchestrator',
    publicKey,
    scopes,
    policy: { perTransaction: { max: '5' }, dailyBudget: { max: '20' }, categories: { allow: ['transfer'] } },
  })
  agentId = String(body.agentId)
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Runs a program under a budget. */
const runOptions = (...options: readonly string[]) => ['run', '--url', origin, '--key', keyFile, ...options]
const pay = (amount: string) =>
  `"$BURSAR" .build/bin/main.js agent call --key "$BURSAR_KEY_FILE" POST /api/wallets/transfer --data '${JSON.stringify({ destination: payee, amount, token: 'USDC' })}'`
const env = { BURSAR: process.execPath }
const children = z.object({ delegations: z.array(z.object({ agentId: z.string() })) })
async function listLiving() {
  const { body } = await owner.send('GET', `/api/agents/delegations?parentId=${agentId}`)
  return children.parse(body).delegations.map(({ agentId }) => ({ agentId }))
}

describe('bursar run', () => {
  it('lets a program spend its budget and no more, and accounts for it', async () => {
    const script = [pay('1.5'), pay('1'), 'exit 3'].join('; ')
    const { code, out, err } = await bursar(
      runOptions('--budget', '2.00', '--for', '5m', '--name', 'research', '--', 'sh', '-c', script),
      env,
    )
    expect([code, err]).toEqual([3, expect.stringContaining('spent 1.5 of 2 USD in 1 spends')])
    expect(out).toContain('total_budget')
    expect(err).toContain('1.5 USDC   transfer')
    const { body } = await owner.send('GET', `/api/agents/keys/${agentId}/tree`)
    expect(body.children).toMatchObject([
      { name: 'research', task: 'research', status: 'revoked', earmarked: '2' },
    ])
    const { body: usage } = await owner.send('GET', `/api/agents/keys/${agentId}/usage?by=task`)
    expect(usage.tasks).toMatchObject([{ task: 'research', used: '1.5', count: 1 }])
  })

  it('hands signals on, and revokes the key when the program was killed', async () => {
    const running = startBursar(runOptions('--budget', '1', '--', 'sh', '-c', 'echo started; exec sleep 60'))
    await expect.poll(running.out, { timeout: 20_000 }).toContain('started')
    running.interrupt()
    const { code, err } = await running.ended
    expect([code, err]).toEqual([130, expect.stringContaining('the key is revoked')])
    expect(await listLiving()).toEqual([])
  })

  it('revokes the key although signals come while it does so', async () => {
    const script = 'parent=$PPID; (for i in $(seq 40); do kill -TERM $parent; sleep 0.01; done) & exit 0'
    const { err } = await bursar(runOptions('--budget', '1', '--', 'sh', '-c', script))
    expect(err).toContain('the key is revoked')
    expect(await listLiving()).toEqual([])
  })

  it.each([
    ['also below a key that was paused meanwhile', { status: 'paused' }, 'the key is revoked'],
    ['or says that it could not', { scopes: ['wallets:read'] }, 'could not be revoked and ends at 2'],
  ])('revokes the key %s, and keeps the exit code of the program', async (_how, change, expected) => {
    const script = 'echo started; trap "exit 3" INT; while :; do sleep 0.1; done'
    const running = startBursar(runOptions('--budget', '1', '--', 'sh', '-c', script))
    await expect.poll(running.out, { timeout: 20_000 }).toContain('started')
    await owner.send('PATCH', `/api/agents/keys/${agentId}`, change)
    running.interrupt()
    const { code, err } = await running.ended
    expect([code, err]).toEqual([3, expect.stringContaining(expected)])
    for (const { agentId: left } of await listLiving())
      await owner.send('DELETE', `/api/agents/delegations/${left}`)
    const restored = await owner.send('PATCH', `/api/agents/keys/${agentId}`, { status: 'active', scopes })
    expect(restored.status).toBe(200)
  })

  it('revokes the key, and keeps the exit code, when nobody reads what it tells any more', async () => {
    const running = startBursar(
      runOptions('--budget', '1', '--', 'sh', '-c', 'echo started; sleep 1; exit 7'),
    )
    await expect.poll(running.out, { timeout: 20_000 }).toContain('started')
    running.closeErr()
    expect((await running.ended).code).toBe(7)
    expect(await listLiving()).toEqual([])
  })

  it('keeps the session of the owner from the program', async () => {
    const options = runOptions('--budget', '1', '--', 'sh', '-c', 'echo "[$BURSAR_SESSION]"')
    expect((await bursar(options, { BURSAR_SESSION: 'secret' })).out).toContain('[]')
  })

  it.each([
    ['no command', ['--budget', '1'], 64],
    ['no amount', ['--budget', 'much', '--', 'true'], 64],
    ['no time', ['--budget', '1', '--for', 'ever', '--', 'true'], 64],
    ['an unknown option', ['--budget', '1', '--wrong', '--', 'true'], 64],
    ['more than its key has', ['--budget', '21', '--', 'true'], 77],
    ['an empty program', ['--budget', '1', '--name', 'empty', '--', ''], 64],
    ['no such program', ['--budget', '1', '--', 'bursar-no-such-program'], 127],
    ['a program below a file', ['--budget', '1', '--', '/etc/passwd/program'], 127],
    ['a file that is no program', ['--budget', '1', '--', '/etc/passwd'], 126],
  ])('says what is wrong, and leaves no key: %s', async (_why, options, expected) => {
    const { code, err } = await bursar(runOptions(...options))
    expect([code, err]).toEqual([expected, expect.stringMatching(/\w/)])
    expect(await listLiving()).toEqual([])
  })

  it('refuses a name that is none before it asks the gateway', async () => {
    for (const name of ['', '   ', '\t']) {
      const { code, err } = await bursar(runOptions('--budget', '1', '--name', name, '--', 'true'), env)
      expect([code, err]).toEqual([64, expect.stringContaining('--name')])
    }
  })

  it('says that the gateway cannot be reached', async () => {
    const { code, err } = await bursar([
      'run',
      '--url',
      'http://127.0.0.1:9',
      '--key',
      keyFile,
      '--budget',
      '1',
      '--',
      'true',
    ])
    expect([code, err]).toEqual([69, expect.stringContaining('unreachable')])
  })
})
