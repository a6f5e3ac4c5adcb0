/** The client as a package of its own: installed from a gateway into an empty folder, small, and able to pay. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { sharedGateway } from '../journeys/gateway.ts'

const run = promisify(execFile)
const MAX_BYTES = 300 * 1024

const program = `
import { Bursar } from 'bursar-client'
const [url] = process.argv.slice(2)
const { demoApiKey: apiKey } = await new Bursar({ url }).sandbox.credentials()
const bursar = new Bursar({ url, apiKey })
const payment = { destination: '0x00000000000000000000000000000000000A11cE', amount: '0.01', token: 'USDC' }
console.log(JSON.stringify(await bursar.wallets.transfer(payment)))
`

describe('the package of the client', () => {
  const origin = sharedGateway()
  const folder = mkdtempSync(join(tmpdir(), 'bursar-client-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  it('is installed from the gateway alone, with no other package, and pays', async () => {
    const quietly = ['--silent', '--no-audit', '--no-fund']
    await run('npm', ['install', ...quietly, `${origin}/bursar-client.tgz`], { cwd: folder })
    const modules = join(folder, 'node_modules')
    expect(readdirSync(modules).filter((name) => !name.startsWith('.'))).toEqual(['bursar-client'])
    const files = readdirSync(join(modules, 'bursar-client'), { recursive: true, encoding: 'utf8' })
    const bytes = files.reduce((sum, name) => sum + statSync(join(modules, 'bursar-client', name)).size, 0)
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES)
    const { version } = z
      .object({ version: z.string() })
      .parse(JSON.parse(readFileSync(join(modules, 'bursar-client', 'package.json'), 'utf8')))
    const own = z.object({ version: z.string() }).parse(JSON.parse(readFileSync('package.json', 'utf8')))
    expect(version).toBe(own.version)

    writeFileSync(join(folder, 'pay.mjs'), program)
    const { stdout } = await run(process.execPath, ['pay.mjs', origin], { cwd: folder })
    expect(JSON.parse(stdout)).toMatchObject({
      transferId: expect.stringMatching(/^tx_/),
      status: 'confirmed',
    })
    process.stdout.write(`bursar-client: ${bytes} bytes installed, 1 package\n`)
  }, 60_000)
})
