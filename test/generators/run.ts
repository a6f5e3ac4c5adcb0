/**
 * The OpenAPI document of a running gateway in the hands of others: Redocly's recommended rules, Spectral's with OWASP's, and the obvious set-up
 * of two generators of clients, whose programs are type-checked and then read a wallet; the published client likewise. `npm run generators`; npm
 * downloads the generators, which need another TypeScript than ours, for this run only.
 * @see https://redocly.com/docs/cli/rules/recommended @see https://docs.stoplight.io/docs/spectral @see https://github.com/stoplightio/spectral-owasp-ruleset @see https://openapi-ts.dev @see https://heyapi.dev
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { z } from 'zod'
import { startGateway } from '../journeys/gateway.ts'

const PACKAGES = [
  '@redocly/openapi-core@2.64.0',
  '@stoplight/spectral-cli@6.16.3',
  '@stoplight/spectral-owasp-ruleset@2.0.1',
  'openapi-typescript@7.13.0',
  'openapi-fetch@0.17.0',
  '@hey-api/openapi-ts@0.95.0',
  'typescript@5.9.3',
  '@types/node@20.19.43',
]
const LIMIT_MS = 300_000
const MAX_CLIENT_KB = 30

const folder = mkdtempSync(join(tmpdir(), 'generators-'))
const run = (command: string, args: readonly string[]) =>
  promisify(execFile)(command, args, { cwd: folder, timeout: LIMIT_MS }).catch(({ stdout, stderr }) => {
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`)
  })
const say = (text: string) => process.stderr.write(`${text}\n`)

async function main(): Promise<number> {
  const gateway = await startGateway({ CHAIN: 'simulated' })
  try {
    const document = await (await fetch(`${gateway.origin}/api/openapi.json`)).text()
    const { demoApiKey } = z
      .looseObject({ demoApiKey: z.string() })
      .parse(await (await fetch(`${gateway.origin}/sandbox/credentials`)).json())
    say(`The document has ${(document.length / 1000).toFixed(0)} KB.`)
    const client = gzipSync(readFileSync('src/client/.build/index.js'), { level: 9 }).length
    say(`The published client has ${(client / 1000).toFixed(1)} KB, compressed, of at most ${MAX_CLIENT_KB}.`)
    if (client > MAX_CLIENT_KB * 1000) return 1
    prepare(document)
    await run('npm', ['install', '--no-fund', '--no-audit', '--no-package-lock', ...PACKAGES])

    symlinkSync(process.cwd(), join(folder, 'node_modules', 'bursar'))

    const { stdout: problems } = await run('node', ['lint.mjs', 'openapi.json'])
    say(problems === '' ? 'Redocly: no problem.' : `Redocly:\n${problems}`)
    const rules = ['spectral', 'lint', 'openapi.json', '--ruleset', 'spectral.yaml']
    await run('npx', [...rules, '--fail-severity', 'hint', '--fail-on-unmatched-globs', '--quiet'])
    say('Spectral: no problem.')

    await run('npx', ['openapi-typescript', 'openapi.json', '-o', 'api.ts'])
    await run('npx', ['openapi-ts', '-i', 'openapi.json', '-o', 'client'])
    await run('npx', ['tsc'])
    const programs = ['openapi-fetch', 'hey-api', 'client']
    for (const program of programs) {
      const { stdout } = await run('node', [`built/${program}.js`, gateway.origin, demoApiKey])
      const { address, refused } = outcome.parse(JSON.parse(stdout))
      say(`${program}: reads wallet ${address}, and a bad transfer is ${refused}.`)
    }
    return problems === '' ? 0 : 1
  } finally {
    await gateway.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const outcome = z.looseObject({
  address: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  refused: z.literal('invalid_request'),
})

/** Writes a project such as a reader of the generators' guides would start. */
function prepare(document: string): void {
  cpSync('test/generators/programs', folder, { recursive: true })
  cpSync('test/generators/spectral.yaml', join(folder, 'spectral.yaml'))
  writeFileSync(join(folder, 'openapi.json'), document)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', private: true }))
  const compilerOptions = {
    strict: true,
    target: 'ES2022',
    module: 'NodeNext',
    allowImportingTsExtensions: true,
    rewriteRelativeImportExtensions: true,
    skipLibCheck: true,
    types: ['node'],
    outDir: 'built',
  }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: ['openapi-fetch.ts', 'hey-api.ts', 'client.ts'] }),
  )
}

process.exitCode = await main()
