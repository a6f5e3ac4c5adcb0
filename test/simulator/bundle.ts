/**
 * Bundles the simulator, and the gateway's own modules with or without a known defect; packages stay outside. Bundles run on
 * plain Node: a loader that compiles on the way would answer imports from a thread of its own.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import type { Edit } from './mutants/mutant.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Below node_modules, so that packages resolve. */
const directory = join(root, 'node_modules/.cache/bursar-simulator')

/** @returns the path of the worker, which takes the paths of gateways. */
export function bundleWorker(): Promise<string> {
  return bundle('test/simulator/worker.ts', `worker-${process.pid}.mjs`, [])
}

/** @param name of a file. @returns its path. @throws Error for an edit whose text is not there any more. */
export function bundleGateway(name: string, edits: readonly Edit[]): Promise<string> {
  return bundle('test/simulator/gateway-graph.ts', `gateway-${process.pid}-${name}.mjs`, edits)
}

export function removeBundle(path: string): void {
  rmSync(path, { force: true })
}

async function bundle(entry: string, name: string, edits: readonly Edit[]): Promise<string> {
  const outfile = join(directory, name)
  mkdirSync(directory, { recursive: true })
  const missing = new Set(edits)
  await build({
    entryPoints: [join(root, entry)],
    outfile,
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    jsx: 'automatic',
    jsxImportSource: 'hono/jsx',
    tsconfigRaw: {},
    logLevel: 'error',
    plugins: [
      {
        name: 'simulation',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\.tsx?$/ }, ({ path }) => {
            if (path.includes('node_modules')) return undefined
            const own = pathToFileURL(path).href
            let contents = readFileSync(path, 'utf8').replaceAll('import.meta.url', JSON.stringify(own))
            for (const edit of edits) {
              if (join(root, edit.file) !== path) continue
              contents = applyEdit(contents, edit)
              missing.delete(edit)
            }
            return { contents, loader: path.endsWith('x') ? 'tsx' : 'ts' }
          }),
      },
    ],
  })
  for (const { file } of missing) throw new Error(`${file} is not part of a gateway`)
  writeFileSync(outfile, importAtOnce(readFileSync(outfile, 'utf8')))
  return outfile
}

/** @throws Error when the text is not there any more. */
function applyEdit(source: string, { file, text, by }: Edit): string {
  if (!source.includes(text)) throw new Error(`${file} has no "${text}"`)
  return source.replace(text, () => by)
}

/** @returns the statement of an SQL function with edits. */
export function editFunction(edits: readonly Edit[]): readonly string[] {
  const files = new Map<string, string>()
  for (const edit of edits)
    files.set(edit.file, applyEdit(files.get(edit.file) ?? readFileSync(join(root, edit.file), 'utf8'), edit))
  return [...files.values()]
}

/** Packages that are imported when they are needed are imported at once: loading a file is no step of a simulation. */
function importAtOnce(code: string): string {
  const names = new Map<string, string>()
  const body = code.replaceAll(/\bimport\((".+?")\)/g, (_call, specifier: string) => {
    const name = names.get(specifier) ?? `atOnce${names.size}`
    names.set(specifier, name)
    return `Promise.resolve(${name})`
  })
  return [...names].map(([specifier, name]) => `import * as ${name} from ${specifier}\n`).join('') + body
}
