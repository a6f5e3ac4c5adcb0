/**
 * Packs what `npx bursar` runs: what was built, a package.json that installs only what the bundle left outside, and the versions of
 * that. Says which packages the bundle holds, with their licences. Writes what registries ask for beside it: `server.json` for MCP's,
 * and a software bill of materials. Prints the path of the tarball.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const folder = '.build/package'
const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'))
const { scripts: _, workspaces: _own, devDependencies: _dev, private: _private, files, ...own } = readJson('package.json')
const bundles = [readJson('.build/meta.json'), readJson('.build/console/meta.json')]

/** Code that V8 kept is of one version of Node, and traces name lines of the bundle. */
const isWanted = (path) => !/\.(map|code)$|\.build\/console\/meta\.json$/.test(path)

/** @returns the package that a path lies in or a module is of; undefined: none. */
const nameOf = (path) => /^(@[^/]+\/[^/]+|[^@./][^/]*)/.exec(path)?.[1]

const outside = new Set(
  bundles
    .flatMap(({ outputs }) => Object.values(outputs))
    .flatMap(({ imports }) => imports.filter(({ external }) => external).map(({ path }) => nameOf(path))),
)
const inside = new Map(
  bundles
    .flatMap(({ inputs }) => Object.keys(inputs))
    .flatMap((path) => {
      const [, place, rest] = /^((?:.*\/)?node_modules\/)(.*)$/.exec(path) ?? []
      return rest === undefined ? [] : [[join(place, nameOf(rest)), nameOf(rest)]]
    }),
)

/** What MCP's registry lists: a sandbox of one's own, or a signing bridge to a gateway that runs elsewhere. Schema of 2025-12-11. */
function describeServer({ name, version, mcpName }) {
  const npm = { registryType: 'npm', identifier: name, version, runtimeHint: 'npx' }
  const option = (flag, description, input = {}) => ({ type: 'named', name: flag, description, isRequired: true, ...input })
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: mcpName,
    title: 'Bursar',
    description: 'Pay, buy by x402, use cards, bank and invest, under a spend policy that holds. Sandbox built in.',
    version,
    packages: [
      {
        ...npm,
        packageArguments: [{ type: 'positional', value: 'serve' }],
        environmentVariables: [
          { name: 'PORT', description: 'Port of the sandbox', format: 'number', default: '8787' },
        ],
        transport: {
          type: 'streamable-http',
          url: 'http://127.0.0.1:{PORT}/mcp',
          headers: [
            {
              name: 'Authorization',
              description: 'Bearer and the API key that the sandbox prints as it starts, or one of your own',
              placeholder: 'Bearer bsk_sandbox_…',
              isRequired: true,
              isSecret: true,
            },
          ],
        },
      },
      {
        ...npm,
        packageArguments: [
          { type: 'positional', value: 'mcp' },
          option('--url', 'Origin of the gateway', { placeholder: 'https://bursar.example' }),
          option('--key', "File with the agent's key, from `bursar agent register`", { format: 'filepath' }),
        ],
        transport: { type: 'stdio' },
      },
    ],
  }
}

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
for (const name of [...files.map((name) => name.replace(/\/\*.*$/, '')), 'LICENSE', 'README.md'])
  cpSync(name, join(folder, name), { recursive: true, filter: isWanted })

// An empty database, so that a first start makes none.
mkdirSync(join(folder, '.cache'))
for (const name of readdirSync('.cache').filter((file) => /^cluster-\w+\.tar$/.test(file)))
  writeFileSync(join(folder, '.cache', `${name}.gz`), gzipSync(readFileSync(join('.cache', name)), { level: 9 }))

const dependencies = Object.fromEntries(Object.entries(own.dependencies).filter(([name]) => outside.has(name)))
const writeJson = (path, value) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
// It is compiled when it is installed, and only keys in tokens need it: who has some installs it beside.
const { pkcs11js, ...optionalDependencies } = own.optionalDependencies
const beside = { peerDependencies: { pkcs11js }, peerDependenciesMeta: { pkcs11js: { optional: true } } }
const shipped = [...files, '.cache', 'THIRD-PARTY.txt', 'npm-shrinkwrap.json', 'server.json']
writeJson(join(folder, 'package.json'), { ...own, files: shipped, dependencies, optionalDependencies, ...beside })

// The lock file without what is not installed here. As a shrinkwrap it counts for whoever installs the package.
cpSync('package-lock.json', join(folder, 'package-lock.json'))
cpSync('.npmrc', join(folder, '.npmrc'))
const quietly = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
execFileSync('npm', ['install', '--package-lock-only', '--prefer-offline', ...quietly], { cwd: folder })
const listing = ['sbom', '--package-lock-only', '--omit=dev', '--sbom-format=cyclonedx', '--sbom-type=application']
const materials = JSON.parse(execFileSync('npm', listing, { cwd: folder, maxBuffer: 64e6 }))
const bundled = [...inside.keys()].map((path) => {
  const { name, version, license } = readJson(join(path, 'package.json'))
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const licenses = typeof license === 'string' ? [{ expression: license }] : []
  return { 'bom-ref': `${name}@${version}`, type: 'library', name, version, scope: 'required', purl, licenses }
})
const isNew = (one, at, all) =>
  [...materials.components, ...all.slice(0, at)].every((other) => other['bom-ref'] !== one['bom-ref'])
materials.metadata.component.name = own.name
writeJson('.build/sbom.cdx.json', { ...materials, components: [...materials.components, ...bundled.filter(isNew)] })
renameSync(join(folder, 'package-lock.json'), join(folder, 'npm-shrinkwrap.json'))
rmSync(join(folder, '.npmrc'))
const notices = [...inside]
  .toSorted(([, one], [, other]) => (one < other ? -1 : 1))
  .map(([path]) => {
    const { name, version, license = 'see below', repository } = readJson(join(path, 'package.json'))
    const [file] = readdirSync(path).filter((entry) => /^(licen[cs]e|copying)/i.test(entry))
    const sources = typeof repository === 'string' ? repository : repository?.url
    const text = file === undefined ? '' : `\n${readFileSync(join(path, file), 'utf8').trim()}\n`
    return `${name} ${version}: ${license}\n${sources ?? ''}\n${text}`
  })
writeFileSync(
  join(folder, 'THIRD-PARTY.txt'),
  `The programs and pages of this package hold these, unchanged:\n\n${notices.join(`\n${'-'.repeat(80)}\n`)}`,
)
writeJson(join(folder, 'server.json'), describeServer(own))
cpSync(join(folder, 'server.json'), '.build/server.json')

const packing = ['pack', '--json', '--ignore-scripts', '--dry-run=false', '--pack-destination', '..']
const [{ filename, unpackedSize }] = JSON.parse(execFileSync('npm', packing, { cwd: folder, encoding: 'utf8' }))
process.stdout.write(`.build/${filename}, ${Math.round(unpackedSize / 1e6)} MB unpacked\n`)
