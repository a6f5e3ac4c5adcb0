/** The import table, enforced: which layer may import which. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesBelow } from './files.ts'

/** The layers, first match wins. */
const layers: readonly (readonly [layer: string, files: RegExp])[] = [
  ['root', /^(src\/(launch|main|runtime|settings|sandbox\/sandbox)\.ts|mcp\/stdio\.ts|test\/.*)$/],
  ['policies', /^policies\//],
  ['failures', /^src\/core\/failures\//],
  ['base', /^src\/core\/base\//],
  ['money', /^src\/core\/money\//],
  ['config', /^src\/core\/config\//],
  [
    'port',
    /^src\/(providers\/([^/]+|[^/]+\/(port|chains|customers|accounts))|storage\/(database|partitions|schema|unavailable))\.ts$/,
  ],
  ['adapter', /^src\/(providers\/[^/]+|chain|storage)\//],
  ['ledger', /^src\/books\/ledger\//],
  ['evidence', /^src\/books\/evidence\//],
  ['alarms', /^src\/books\/alarms\//],
  ['journal', /^src\/records\/journal\//],
  ['spending', /^src\/books\/(spending|approvals|debts)\//],
  ['kernel', /^src\/kernel\//],
  ['x402', /^src\/rails\/selling\/x402\//],
  ['http', /^src\/server\/http\//],
  ['jobs', /^src\/server\/jobs\//],
  ['client', /^src\/client\//],
  ['console', /^src\/console\//],
  ['commands', /^src\/commands\//],
  ['people', /^src\/people\//],
  ['wallets', /^src\/rails\/wallets\//],
  ['rails', /^src\/(rails|sandbox)\//],
  ['records', /^src\/records\//],
  ['tools', /^tools\//],
  ['mcp', /^mcp\//],
]

/** What moves or keeps money for somebody: each of them may import those before it. */
const domains = ['people', 'wallets', 'rails', 'records']

/** Layers that all others may import. */
const foundation = ['failures', 'base', 'money', 'config']

/** What every domain may import. */
const books = [...foundation, 'port', 'ledger', 'evidence', 'alarms', 'spending', 'policies']

/** Layers that each layer may import besides itself. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  policies: [],
  failures: [],
  base: ['failures'],
  money: ['failures', 'base'],
  config: ['failures', 'base', 'money'],
  port: foundation,
  ledger: [...foundation, 'port'],
  evidence: [...foundation, 'port'],
  alarms: [...foundation, 'port'],
  journal: [...foundation, 'port'],
  spending: [...foundation, 'port', 'ledger', 'policies'],
  people: books,
  wallets: [...books, 'people'],
  rails: [...books, 'people', 'wallets'],
  records: [...books, 'people', 'wallets', 'rails'],
  kernel: [...foundation, 'port', 'ledger', 'journal', 'spending', 'policies', 'records'],
  adapter: [...foundation, 'port'],
  tools: [...foundation, 'port', 'kernel', 'ledger', 'alarms', 'journal', 'spending', ...domains, 'policies'],
  x402: [...foundation, 'port', 'evidence', ...domains],
  http: [...foundation, 'port', 'kernel', 'evidence', ...domains, 'policies', 'x402'],
  mcp: [...foundation, 'port', 'kernel', ...domains, 'policies', 'x402'],
  // The table of jobs starts every job with the services of the process, which the kernel declares.
  jobs: [...foundation, 'port', 'kernel', 'ledger', 'evidence', 'alarms', 'spending', ...domains],
  // Published: it has the types of the schemas, written out, and nothing of the gateway.
  client: [],
  // Runs in the browser: it can do nothing that the published client cannot.
  console: ['client'],
  commands: [
    ...foundation,
    'client',
    'port',
    'kernel',
    'journal',
    ...domains,
    'http',
    'x402',
    'jobs',
    'root',
  ],
}

/** Layers whose folders are isolated: a domain or an adapter never imports a sibling. */
const closed = new Set(['people', 'rails', 'records', 'adapter'])

const files = ['src', 'mcp', 'tools', 'policies'].flatMap(filesBelow)
const findLayer = (file: string) => layers.find(([, pattern]) => pattern.test(file))?.[0] ?? 'unknown'
const findRoom = (file: string) =>
  file.startsWith('src/storage/')
    ? 'src/storage'
    : dirname(file).split('/').slice(0, countDepth(file)).join('/')
/** Selling keeps what it sold apart from how it is paid. */
const countDepth = (file: string) =>
  file.startsWith('src/chain/') ? 2 : file.startsWith('src/rails/selling/') ? 4 : 3

function listImports(file: string): { target: string; isType: boolean }[] {
  const text = readFileSync(file, 'utf8')
  const statements = [...text.matchAll(/(?:^|\n)\s*(import|export)(\s+type)?[^;'"]*?from\s+'([^']+)'/g)].map(
    (match) => ({ target: match[3] ?? '', isType: match[2] !== undefined }),
  )
  const dynamic = [...text.matchAll(/import\('([^']+)'\)/g)].map((match) => ({
    target: match[1] ?? '',
    isType: false,
  }))
  return [...statements, ...dynamic]
}

describe('the import table', () => {
  it('assigns every file to a layer', () => {
    expect(files.filter((file) => findLayer(file) === 'unknown')).toEqual([])
    expect(files.length).toBeGreaterThan(50)
  })

  it('permits every import', () => {
    const broken = files.flatMap((file) => {
      const layer = findLayer(file)
      if (layer === 'root') return []
      return listImports(file)
        .filter(({ target }) => target.startsWith('.'))
        .map(({ target }) => posix.normalize(posix.join(dirname(file), target)))
        .filter((target) => {
          const to = findLayer(target)
          if (to === layer) return closed.has(layer) && findRoom(file) !== findRoom(target)
          return !(mayImport[layer] ?? []).includes(to)
        })
        .map((target) => `${file} (${layer}) → ${target} (${findLayer(target)})`)
    })
    expect(broken).toEqual([])
  })

  it('has no circle between files, types included', () => {
    const imports = new Map(
      files.map((file) => [
        file,
        listImports(file)
          .filter(({ target }) => target.startsWith('.'))
          .map(({ target }) => posix.normalize(posix.join(dirname(file), target))),
      ]),
    )
    const finished = new Set<string>()
    const circles: string[] = []
    const visit = (file: string, path: readonly string[]) => {
      if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' → '))
      if (path.includes(file) || finished.has(file)) return
      for (const target of imports.get(file) ?? []) visit(target, [...path, file])
      finished.add(file)
    }
    for (const file of files) visit(file, [])
    expect(circles).toEqual([])
  })

  it('restricts imports of tools and mcp to main.ts', () => {
    const importers = files.filter(
      (file) =>
        file.startsWith('src/') &&
        listImports(file).some(({ target }) => /(^|\/)\.\.\/(tools|mcp)\//.test(target)),
    )
    expect(importers).toEqual(['src/main.ts'])
  })

  it('restricts imports of adapters to the runtime', () => {
    const importers = files.filter(
      (file) =>
        findLayer(file) !== 'adapter' &&
        listImports(file).some(
          ({ target }) =>
            target.startsWith('.') &&
            findLayer(posix.normalize(posix.join(dirname(file), target))) === 'adapter',
        ),
    )
    expect(importers).toEqual(['src/runtime.ts'])
  })

  it.each([
    ['x402', /^(x402-hono|@x402\/)/, /^src\/rails\/selling\/x402\//],
    ['the MCP SDK', /^@modelcontextprotocol\//, /^(mcp|src\/console\/apps)\//],
    ['the database drivers', /^(pg|@electric-sql\/pglite)$/, /^src\/storage\//],
    ['Redis', /^ioredis$/, /^src\/providers\/rate-limiter\//],
    ['SMTP', /^nodemailer$/, /^src\/providers\/messages\//],
    ['IVMS101', /^ivms101/, /^src\/people\/compliance\//],
    ['Prometheus', /^prom-client$/, /^src\/providers\/metrics\//],
    ['OpenTelemetry', /^@opentelemetry\//, /^src\/providers\/tracing\//],
    ['phone numbers', /^libphonenumber-js/, /^src\/people\/identity\//],
    [
      'the OpenID provider',
      /^oidc-provider$/,
      /^src\/server\/http\/(oidc|authorization-server|sandbox-identity-provider)\//,
    ],
    ['the OpenID client', /^openid-client$/, /^src\/providers\/identity-provider\//],
    ['Hono', /^(hono|@hono\/)/, /^src\/(server\/http|rails\/selling\/x402|commands)\//],
  ])('keeps %s isolated from its siblings', (_name, packages, room) => {
    const violations = files.filter(
      (file) => !room.test(file) && listImports(file).some(({ target }) => packages.test(target)),
    )
    expect(violations).toEqual([])
  })

  it('has only expected files at the top level', () => {
    const tracked = readdirSync('.')
      .filter((name) => !name.startsWith('.') && name !== 'node_modules')
      .sort()
    expect(tracked).toEqual([
      'CHANGELOG.md',
      'Dockerfile',
      'LICENSE',
      'NOTICE',
      'README.md',
      'compose.yaml',
      'docs',
      'mcp',
      'package-lock.json',
      'package.json',
      'policies',
      'src',
      'test',
      'tools',
      'tsconfig.json',
    ])
  })

  it('has every room on the map of its documentation', () => {
    const page = readFileSync('docs/architecture.md', 'utf8')
    const rows = [...page.matchAll(/^\| \w+ \| `(src\/[\w-]+)\/` \| (.*) \|$/gm)]
    expect(rows.map(([, folder]) => folder).sort()).toEqual(
      readdirSync('src', { withFileTypes: true })
        .flatMap((entry) => (entry.isDirectory() ? [`src/${entry.name}`] : []))
        .sort(),
    )
    const grouped = new Set(['src/core', 'src/books', 'src/people', 'src/rails', 'src/records', 'src/server'])
    const missing = rows
      .filter(([, folder = '']) => grouped.has(folder))
      .flatMap(([, folder = '', contents = '']) =>
        readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
          entry.isDirectory() && !contents.includes(`\`${entry.name}\``) ? [`${folder}/${entry.name}`] : [],
        ),
      )
    expect(missing).toEqual([])
  })

  it('never resolves host names on the threads that provider calls need', () => {
    const callers = files.filter(
      (file) =>
        /^src\/(server\/http\/|providers\/[^/]+$)/.test(file) &&
        /import \{[^}]*\blookup\b[^}]*\} from 'node:dns/.test(readFileSync(file, 'utf8')),
    )
    expect(callers).toEqual([])
  })

  it('calls providers through one client', () => {
    const callers = files.filter(
      (file) =>
        /^src\/(core\/base|providers|chain)\//.test(file) &&
        /(?<![.\w])fetch\(/.test(readFileSync(file, 'utf8')),
    )
    expect(callers).toEqual(['src/core/base/fetch-within.ts'])
  })

  it('requests URLs of strangers through one fetch, and through one file of the forward proxy', () => {
    const callers = files.filter(
      (file) =>
        /from 'node:https'|import \* as http |import \{[^}]*\brequest\b[^}]*\} from 'node:http'/.test(
          readFileSync(file, 'utf8'),
        ) || /from '[^']*resolve-host\.ts'/.test(readFileSync(file, 'utf8')),
    )
    expect(callers.sort()).toEqual(['src/commands/proxy/outgoing.ts', 'src/providers/public-fetch.ts'])
  })

  // Imports and globals of Node are held by the lint rules in `.biome.json`.
  it('reads the clock and generates randomness in one place each', () => {
    const strays = files.filter(
      (file) =>
        // The client runs in the programs of others, pages in their browsers.
        !/^src\/(core\/base\/(clock|timers|random)\.ts$|client\/|console\/|server\/http\/pages\/client\/)/.test(
          file,
        ) &&
        /Date\.now\b|Math\.random\b|new Date\(\)|(?<![.\w])Date\(\)|AbortSignal\.timeout\b|process\.(hrtime|uptime)\b|\.generateKeys\(/.test(
          readFileSync(file, 'utf8'),
        ),
    )
    expect(strays).toEqual([])
  })
})
