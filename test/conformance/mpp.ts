/**
 * `mppx validate`, the field's own judge of sellers that take payment authentication (MPP), against those of a running gateway:
 * the honest one passes every check, its payment on the chain included, and the one that charges again does not.
 * @see https://www.npmjs.com/package/mppx
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { z } from 'zod'
import { startGateway } from '../journeys/gateway.ts'

const LIMIT_MS = 120_000

const check = z.looseObject({ label: z.string(), severity: z.string(), detail: z.string().optional() })
const report = z.looseObject({
  endpoints: z.array(
    z.looseObject({
      challenge: z.array(check).default([]),
      errorHandling: z.array(check).default([]),
      payment: z.array(check).default([]),
    }),
  ),
})
type Check = z.output<typeof check>

const say = (text: string) => process.stdout.write(`${text}\n`)

/** Runs the judge over one seller. @returns its exit code, and every check with its outcome. */
async function judge(
  { origin, privateKey, node, home }: Readonly<Record<'origin' | 'privateKey' | 'node' | 'home', string>>,
  seller: string,
): Promise<{ code: number | null; checks: readonly Check[] }> {
  const args = ['validate', origin, '--endpoint', `GET:/sandbox/sellers/${seller}`, '--output-json']
  const env = {
    ...{ PATH: process.env.PATH, NO_COLOR: '1', NO_UPDATE_NOTIFIER: '1', HOME: home },
    ...{ MPPX_PRIVATE_KEY: privateKey, MPPX_RPC_URL: node },
  }
  // Through a file: the judge ends itself while a pipe still holds some of its report.
  const path = join(home, 'report.json')
  const file = openSync(path, 'w')
  const child = spawn('node_modules/.bin/mppx', args, {
    ...{ env, stdio: ['ignore', file, 'ignore'], timeout: LIMIT_MS },
  })
  await once(child, 'exit')
  closeSync(file)
  const { endpoints } = report.parse(JSON.parse(readFileSync(path, 'utf8')))
  return {
    code: child.exitCode,
    checks: endpoints.flatMap((one) => [...one.challenge, ...one.errorHandling, ...one.payment]),
  }
}

async function main(): Promise<number> {
  const home = mkdtempSync(join(tmpdir(), 'mppx-'))
  const gateway = await startGateway()
  try {
    const { origin } = gateway
    const node = /chain \S+ at (\S+?)\)/.exec(gateway.output())?.[1]
    if (node === undefined) throw new Error(`The gateway names no chain:\n${gateway.output()}`)
    const privateKey = generatePrivateKey()
    const funded = await fetch(`${origin}/sandbox/faucet`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ address: privateKeyToAddress(privateKey), amount: '5' }),
    })
    if (!funded.ok) throw new Error(`The faucet answered ${funded.status}: ${await funded.text()}`)
    const tools = { origin, privateKey, node, home }

    const honest = await judge(tools, 'headlines')
    for (const { severity, label, detail } of honest.checks) say(`  ${severity}  ${label}: ${detail ?? ''}`)
    const faults = honest.checks.filter(({ severity }) => severity !== 'pass')
    // A skipped payment would pass as well.
    const isPaid = honest.checks.some(({ label }) => label === 'Payment: successful')
    say(`headlines: ${honest.checks.length} checks, ${faults.length} not passed, paid: ${isPaid}`)

    const penniless = await judge({ ...tools, privateKey: generatePrivateKey() }, 'headlines')
    const isRefused = penniless.checks.some(({ severity }) => severity === 'fail')
    say(`headlines, payer without money: ${isRefused ? 'refused, as it must be' : 'served, and must not be'}`)
    return honest.code === 0 && faults.length === 0 && isPaid && isRefused ? 0 : 1
  } finally {
    await gateway.stop()
    rmSync(home, { recursive: true, force: true })
  }
}

process.exitCode = await main()
