/** The commands of docs/from-nothing.md lead from Debian's base to production: this test runs the page, and nothing else. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { ecbDocument, startFeed } from '../contracts/ecb-feed.ts'
import { type Mainnet, startMainnet } from '../journeys/mainnet.ts'
import { startVendors } from '../journeys/vendor-server.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { startSmtp } from '../smtp.ts'
import { openCleanRoot, readCommands, whyNoRoot } from './clean-root.ts'

const PAGE = 'docs/from-nothing.md'
const LONGEST_MS = 540_000
const OWNER = 'ada@example.com'
const NAME = 'money.test'

const reason = hasAnvil() ? whyNoRoot() : 'anvil is not installed'
if (reason !== undefined)
  process.stderr.write(`\n!! ${PAGE} IS NOT TESTED: no clean root on this machine, because ${reason}.\n\n`)

/** Words after `command` in the page's blocks that are no options. */
function readPackages(commands: readonly string[], command: RegExp): readonly string[] {
  const line = commands.join('\n').replaceAll(/\\\n\s*/g, ' ')
  return (command.exec(line)?.[1] ?? '').split(/\s+/).filter((word) => /^[a-z]/.test(word))
}

/** Receives alerts. */
async function startPager() {
  const alerts: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      const { alerts: sent } = z
        .looseObject({ alerts: z.array(z.looseObject({ labels: z.looseObject({ alertname: z.string() }) })) })
        .parse(JSON.parse(body))
      alerts.push(...sent.map(({ labels }) => labels.alertname))
      response.end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { alerts, url: readUrl(server.address()), close: () => server.close().closeAllConnections() }
}

const readUrl = (address: unknown) => `http://127.0.0.1:${z.object({ port: z.int() }).parse(address).port}`

describe.skipIf(reason !== undefined)('an operator with docs/from-nothing.md', () => {
  const commands = readCommands(PAGE)
  const closing: (() => unknown)[] = []
  let base: Mainnet
  let mail: Awaited<ReturnType<typeof startSmtp>>
  let pager: Awaited<ReturnType<typeof startPager>>
  let yours: Readonly<Record<string, string>>
  let root: ReturnType<typeof openCleanRoot>

  beforeAll(async () => {
    execFileSync('npm', ['run', '--silent', 'package'])
    const { version } = z
      .looseObject({ version: z.string() })
      .parse(JSON.parse(readFileSync('package.json', 'utf8')))
    base = await startMainnet('base')
    closing.push(() => base.close())
    mail = await startSmtp()
    closing.push(() => mail.close())
    const vendors = await startVendors()
    closing.push(() => vendors.close())
    const rates = await startFeed(ecbDocument(new Date().toISOString().slice(0, 10)))
    closing.push(() => rates.close())
    pager = await startPager()
    closing.push(() => pager.close())
    yours = {
      NAME,
      OWNER,
      NODE_URL: base.url,
      PAY_TO: `0x${'2'.repeat(40)}`,
      SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
      SCREENING_URL: vendors.url,
      SCREENING_API_KEY: 'a-key-of-ours',
      RATES_URL: rates.url,
      PAGER_URL: pager.url,
    }
    root = openCleanRoot({
      tarball: resolve(`.build/bursar-${version}.tgz`),
      packages: readPackages(commands, /apt-get install -y (.*)/),
      npmPackages: [/pkcs11js@\S+/.exec(commands.join('\n'))?.[0] ?? ''],
      names: [NAME],
    })
    closing.push(() => root.remove())
  }, LONGEST_MS)
  afterAll(async () => {
    for (const close of closing.reverse()) await close()
  }, 60_000)

  it('reaches production with database, limits, keys in a module, TLS, backup and alerts', {
    timeout: LONGEST_MS,
  }, async () => {
    const [first = '', ...rest] = commands
    const own = first.replaceAll(/^([A-Z_]+)=.*$/gm, (line, name: string) =>
      yours[name] === undefined ? `${line} # has no value in this test` : `${name}=${yours[name]}`,
    )
    expect(own).not.toContain('has no value')
    const script = [own, ...rest].map((text, at) => `echo; echo "== $SECONDS s: block ${at + 1}"\n${text}`)
    const ports = Object.values(yours).flatMap((value) => /127\.0\.0\.1:(\d+)/.exec(value)?.[1] ?? [])
    const shell = await root.start(
      `${script.join('\n')}\necho "== $SECONDS s: end"\n${probes}`,
      ports.map(Number),
    )

    let output = ''
    for (const stream of [shell.stdout, shell.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    const exit = once(shell, 'exit').then(([code]) => code)
    let ended = false
    void exit.then(() => {
      ended = true
    })
    const until = (test: () => boolean) =>
      vi.waitFor(() => expect(ended || test()).toBe(true), { timeout: LONGEST_MS, interval: 200 })

    await until(() => output.includes('press Enter. '))
    const sponsor = /CHAIN_SPONSOR_KEY.*?(0x\w{40})/.exec(output)?.[1]
    if (sponsor !== undefined) await base.giveGas(z.templateLiteral(['0x', z.string()]).parse(sponsor))
    shell.stdin?.write('\n')
    await until(() => mail.mails.length > 0 && output.includes('The code in the mail: '))
    const text = mail.mails.findLast(({ to }) => to.includes(OWNER))?.text ?? ''
    shell.stdin?.write(`${/\b\d{6}\b/.exec(text)?.[0]}\n`)

    const code = await exit
    if (code !== 0) process.stderr.write(output)
    expect(code).toBe(0)
    process.stdout.write(`${[...output.matchAll(/^== .*$/gm)].map(([line]) => line).join('\n')}\n`)

    const after = (block: string) => output.slice(output.indexOf(block))
    expect(output).not.toMatch(/^✗ (key|database|limits|mail|screening|rates|secrets)/m)
    expect(after(': block 9')).toMatch(/^All checks passed with \d warnings/m)
    for (const name of ['CHAIN_SPONSOR_KEY', 'CHAIN_OWNER_KEY', 'RECEIPT_KEY', 'DATA_KEY', 'SESSION_SECRET'])
      expect(after(': block 9')).toMatch(new RegExp(`^✓ key ${name}: .* in PKCS#11 token "bursar"$`, 'm'))
    expect(output).toContain('"database":"ok","chain":"ok","rateLimits":"ok","railControls":"ok"')
    // Also in the restored copy.
    expect(output.match(/^\S+ {2}bursar admin grant$/gm)).toHaveLength(2)
    expect(after(': block 16')).toContain('chain intact')
    for (const [, name] of readFileSync('docs/operating/alerts.yaml', 'utf8').matchAll(/alert: (\w+)/g))
      expect(after(': block 17')).toContain(`"name":"${name}"`)
    await vi.waitFor(() => expect(pager.alerts).toContain('BursarTest'), { timeout: 5_000 })
    expect(pager.alerts.filter((name) => name !== 'BursarTest')).toEqual([])
    expect(after('== promises').trim().split('\n').slice(1)).toEqual([
      'plain 301',
      'metrics 404',
      'bursar|f|f|f|f',
      'postgres|t|t|t|t',
      'refused',
      'bursar',
    ])
  })
})

/** What the page promises, asked of the machine after its last block. */
const probes = `
echo '== promises'
curl -s -o /dev/null -w 'plain %{http_code}\\n' http://$NAME/
curl -s -o /dev/null -w 'metrics %{http_code}\\n' https://$NAME/metrics
runuser -u postgres -- psql -qAt <<'END'
select rolname, rolsuper, rolcreatedb, rolcreaterole, rolreplication from pg_roles where rolname !~ '^pg_' order by rolname;
create role stranger login password 'stranger';
END
(PGPASSWORD=stranger psql -qh 127.0.0.1 -U stranger bursar -c 'select 1' 2>&1 || true) | sed -n 's/.*permission denied for database.*/refused/p'
find /etc/bursar /root/offline -perm /o=r
ps -eo user:20,args | sed -n 's/^\\(\\w*\\) .*bursar serve$/\\1/p'
# A pager waits five seconds for more of the same.
sleep 6
`
