/**
 * Packs what `npx bursar` runs: what was built, and a package.json that installs only what the bundle left outside. Says which
 * packages the bundle holds, with their licences. Prints the path of the tarball.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = '.build/package'
const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'))
const { scripts: _, workspaces: _own, overrides: _all, devDependencies: _dev, private: _private, files, ...own } = readJson('package.json')
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

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
for (const name of [...files.map((name) => name.replace(/\/\*.*$/, '')), 'LICENSE', 'README.md'])
  cpSync(name, join(folder, name), { recursive: true, filter: isWanted })

const dependencies = Object.fromEntries(Object.entries(own.dependencies).filter(([name]) => outside.has(name)))
// It is compiled when it is installed, and only keys in tokens need it: who has some installs it beside.
const { pkcs11js, ...optionalDependencies } = own.optionalDependencies
const beside = { peerDependencies: { pkcs11js }, peerDependenciesMeta: { pkcs11js: { optional: true } } }
writeFileSync(
  join(folder, 'package.json'),
  `${JSON.stringify({ ...own, files: [...files, 'THIRD-PARTY.txt'], dependencies, optionalDependencies, ...beside }, null, 2)}\n`,
)
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
const packing = ['pack', '--json', '--ignore-scripts', '--dry-run=false', '--pack-destination', '..']
const [{ filename, unpackedSize }] = JSON.parse(execFileSync('npm', packing, { cwd: folder, encoding: 'utf8' }))
process.stdout.write(`.build/${filename}, ${Math.round(unpackedSize / 1e6)} MB unpacked\n`)
