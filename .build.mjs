/**
 * Builds `.build/` and warms `.cache/`: the gateway as one file with the code that V8 compiles at a start, the scripts of
 * the pages, the console, and the published client. Without arguments everything, else the named parts.
 */
import { execFile, spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build, context } from 'esbuild'

const run = promisify(execFile)
const typescript = (project) => run('node_modules/.bin/tsc', ['-p', project]).catch(({ stdout }) => fail(stdout))
const browsers = ['es2022', 'safari17.5']

/** Packages that stay outside of the bundle: they resolve own files, or are under another licence. */
const installed = [
  '@account-abstraction/*',
  '@safe-global/*',
  'oidc-provider',
  'pg',
  'pino',
  'pkcs11js',
]
/** A program part with packages of its own, which few deployments need: a bundle beside the first. */
const TRACING = './opentelemetry.cjs'
const dynamicImport = new RegExp(`\\bimport\\((?="(?:${[...installed, ...builtinModules, 'node:[^"]*'].join('|').replaceAll('*', '[^"]+')})"\\))`, 'g')

const consoleOptions = {
  entryPoints: [
    'src/console/main.tsx',
    'src/console/theme.ts',
    ...['console', 'tokens', 'pages'].map((name) => `src/console/style/${name}.css`),
  ],
  bundle: true,
  splitting: true,
  format: 'esm',
  target: browsers,
  minify: true,
  tsconfig: 'src/console/tsconfig.json',
  define: { IS_DEVELOPMENT: 'false' },
  entryNames: '[name]',
  chunkNames: '[name]-[hash]',
  metafile: true,
  outdir: '.build/console',
  logLevel: 'warning',
}

/** The words of the validator's messages in fifty languages would be half of each view, and no view shows any. */
const withoutLocales = {
  name: 'without locales',
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/locales\/index\.js$/ }, ({ path, resolveDir }) =>
      resolveDir.includes('/zod/') ? { path: join(resolveDir, path, '../en.js') } : undefined,
    ),
}

const withoutTracing = {
  name: 'without tracing',
  setup: ({ onResolve }) =>
    onResolve({ filter: /\/opentelemetry\.ts$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: TRACING, external: true } : undefined,
    ),
}

/** The pages that the x402 middleware has for browsers are a quarter of the program’s text: a bundle that their first use loads. */
const PAYWALL = './paywall.cjs'
const withoutPaywall = {
  name: 'without paywall',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^x402\/paywall$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: PAYWALL, namespace: 'paywall' } : undefined,
    )
    onResolve({ filter: /^\.\/paywall\.cjs$/ }, ({ path }) => ({ path, external: true }))
    onLoad({ filter: /^/, namespace: 'paywall' }, ({ path }) => ({
      contents: `export const getPaywallHtml = (options) => require("${path}").getPaywallHtml(options)`,
    }))
  },
}

/** It finds its fonts by a `require` of its own, which a bundler does not follow. */
const withFonts = {
  name: 'with fonts',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/pdfkit\.node\.mjs$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8')
        .replace('const require$1 = createRequire(import.meta.url);', '')
        .replaceAll('require$1(', 'require('),
    })),
}

/** The embedded database beside the program that looks for it there. */
const DATABASE_FILES = ['pglite.wasm', 'pglite.data', 'initdb.wasm']

const parts = {
  /** One file, because V8 keeps compiled code by file: `src/launch.ts` runs it. */
  async gateway() {
    rmSync('.build/bin', { recursive: true, force: true })
    mkdirSync('.build/bin', { recursive: true })
    const [{ outputFiles, metafile }] = await Promise.all([
      build({
        entryPoints: {
          main: 'src/main.ts',
          proxy: 'src/commands/proxy/main.ts',
          opentelemetry: 'src/providers/tracing/opentelemetry.ts',
          paywall: 'x402/paywall',
        },
        plugins: [withoutTracing, withoutPaywall, withFonts],
        bundle: true,
        platform: 'node',
        target: 'node20.12',
        format: 'cjs',
        outdir: '.build/bin',
        outExtension: { '.js': '.cjs' },
        sourcemap: 'linked',
        sourcesContent: false,
        // Names stay for stack traces.
        minifySyntax: true,
        minifyWhitespace: true,
        external: installed,
        metafile: true,
        write: false,
        define: {
          'import.meta.url': 'moduleUrl',
          BUNDLED_PGLITE: JSON.stringify(readFileSync('node_modules/@electric-sql/pglite/package.json', 'utf8')),
        },
        banner: { js: "const moduleUrl=require('node:url').pathToFileURL(__filename).href;" },
        logLevel: 'warning',
      }),
      build({
        entryPoints: { main: 'src/launch.ts' },
        platform: 'node',
        target: 'node20.12',
        format: 'esm',
        outdir: '.build/bin',
        logLevel: 'warning',
      }),
    ])
    for (const name of DATABASE_FILES)
      cpSync(`node_modules/@electric-sql/pglite/dist/${name}`, `.build/bin/${name}`)
    // Code that V8 kept has lost its way to import modules: the launcher passes one in. What it requires has its own way.
    for (const { path, text } of outputFiles)
      writeFileSync(
        path,
        [TRACING, PAYWALL].some((part) => path.endsWith(part.slice(1)))
          ? text
          : toAscii(text)
              .replace(dynamicImport, 'Import(')
              .replace(`import("${TRACING}")`, `Promise.resolve().then(()=>require("${TRACING}"))`),
      )
    // What it holds of others, which a package of it names.
    writeFileSync('.build/meta.json', JSON.stringify(metafile))
    await warmUp()
  },
  pages: () =>
    typescript('src/server/http/pages/client').then(() =>
      cpSync('node_modules/@simplewebauthn/browser/dist/bundle/index.umd.min.js', '.build/pages/webauthn.js'),
    ),
  async client() {
    const options = { bundle: true, format: 'esm', target: 'es2022', minify: true, logLevel: 'warning' }
    await Promise.all([
      typescript('src/client'),
      build({ ...options, entryPoints: ['src/client/index.ts'], outfile: 'src/client/.build/index.js' }),
    ])
    indentByTabs('src/client/.build')
    await packClient()
  },
  async console() {
    rmSync('.build/console', { recursive: true, force: true })
    const { metafile } = await build(consoleOptions)
    writeFileSync('.build/console/meta.json', JSON.stringify(metafile))
    await build({
      entryPoints: ['src/console/push-worker.ts'],
      bundle: true,
      minify: true,
      target: browsers,
      outdir: '.build/console',
      logLevel: 'warning',
    })
  },
  /** The views inside of hosts: a script and a style that are written into each document. */
  apps: () =>
    build({
      entryPoints: ['src/console/apps/main.tsx', 'src/console/style/apps.css'],
      bundle: true,
      format: 'iife',
      target: browsers,
      minify: true,
      tsconfig: 'src/console/tsconfig.json',
      plugins: [withoutLocales],
      entryNames: '[name]',
      outdir: '.build/apps',
      logLevel: 'warning',
    }),
}

/**
 * The launcher reads the program byte by byte. The bundler leaves characters in regular expressions and tagged templates as they
 * are; their escapes mean the same to both.
 */
function toAscii(text) {
  return text.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Four spaces for each level, as the compiler writes them, would be an eighth of the package. */
function indentByTabs(folder) {
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.d.ts'))) {
    const path = join(folder, name)
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4)))
  }
}

/** Packs the client by itself: the gateway serves the package, which depends on nothing. */
async function packClient() {
  // Packing is wanted even where the build runs within a trial of packing.
  const packing = ['pack', '--json', '--ignore-scripts', '--dry-run=false', '--pack-destination=../../.build']
  const { stdout } = await run('npm', packing, { cwd: 'src/client' })
  const [{ filename }] = JSON.parse(stdout)
  renameSync(`.build/${filename}`, '.build/bursar-client.tgz')
}

/**
 * Starts a sandbox once: it makes the files in `.cache/` (database, chain), and leaves the code that V8 compiled for its
 * start beside the program. Where no chain's binary is installed, it starts without one.
 */
async function warmUp() {
  const failed = await startOnce({})
  if (failed !== null && (await startOnce({ CHAIN: 'simulated' })) !== null) fail(failed)
  // A gateway writes for its own user only, and often another one runs what is built here: these files hold no secret.
  chmodSync('.cache', 0o755)
  const prepared = readdirSync('.cache', { withFileTypes: true }).filter((entry) => entry.isFile())
  for (const path of [`.build/bin/main.cjs.${process.version}.code`, ...prepared.map(({ name }) => `.cache/${name}`)]) chmodSync(path, 0o644)
}

/** Time for the first rounds of the jobs, whose code is part of every start. */
const SETTLE_MS = 3_000

/** @returns what a start that failed said; null if it succeeded. */
function startOnce(env) {
  const child = spawn(process.execPath, ['.build/bin/main.js', 'serve'], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORT: '0',
      DATA_DIR: 'memory',
      LOG_LEVEL: 'warn',
      NO_COLOR: '1',
      BURSAR_WRITE_CODE: '1',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let isServed = false
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
      const origin = /is up at (\S+)/.exec(output)?.[1]
      if (origin === undefined || isServed) return
      isServed = true
      void serveFirstRequests(origin).finally(() => setTimeout(() => child.kill('SIGTERM'), SETTLE_MS))
    })
  return new Promise((resolve) => child.once('close', (code) => resolve(code === 0 ? null : output)))
}

/** The requests of a first minute, so that their code is compiled too. */
async function serveFirstRequests(origin) {
  const { demoApiKey } = await (await fetch(`${origin}/sandbox/credentials`)).json()
  const headers = { authorization: `Bearer ${demoApiKey}`, 'content-type': 'application/json' }
  const get = (path) => fetch(`${origin}${path}`, { headers }).then((answer) => answer.text())
  const post = (path, body) =>
    fetch(`${origin}${path}`, { method: 'POST', headers, body: JSON.stringify(body) }).then((answer) => answer.text())
  await post('/api/auth/guest', {})
  await get('/api/wallets')
  await get('/readyz')
  const destination = '0x000000000000000000000000000000000000dEaD'
  await post('/api/wallets/transfer', { destination, amount: '1', signature: 'sandbox' })
  await get('/api/activity')
}

function fail(text) {
  process.stderr.write(`${text}\n`)
  process.exit(1)
}

/** Runs the gateway from source. A change of the gateway starts it again; one of the console builds it and reloads its pages. */
async function develop() {
  await Promise.all([parts.pages(), parts.client(), parts.console()])
  const options = { ...consoleOptions, minify: false, sourcemap: 'inline', define: { IS_DEVELOPMENT: 'true' } }
  const building = await context(options)
  await building.watch()
  // Its parts have new names after a change, which the gateway reads when it starts.
  const watched = ['watch', '--clear-screen=false', '--include=.build/console/main.js']
  const gateway = spawn('node_modules/.bin/tsx', [...watched, 'src/main.ts', 'serve'], { stdio: 'inherit' })
  const end = (signal) => gateway.kill(signal)
  process.on('SIGINT', end).on('SIGTERM', end)
  gateway.once('close', (code) => {
    void building.dispose().then(() => process.exit(code ?? 0))
  })
}

const asked = process.argv.slice(2)
if (asked.includes('dev')) await develop()
else
  await Promise.all(
    Object.entries(parts).map(([name, part]) => (asked.length === 0 || asked.includes(name) ? part() : undefined)),
  )
