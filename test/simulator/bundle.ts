/** Bundles the gateway's own modules, with or without a known defect; packages stay outside and are shared. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import type * as Graph from './gateway-graph.ts'
import type { Edit } from './mutants/mutant.ts'

export type GatewayGraph = typeof Graph

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Below node_modules, so that packages resolve. */
const directory = join(root, 'node_modules/.cache/bursar-simulator')

/** @returns the bundle's path. @throws Error for an edit whose text is not there any more. */
export async function bundleGateway(edits: readonly Edit[]): Promise<string> {
  const outfile = join(directory, `gateway-${process.pid}-${edits.length === 0 ? 'unchanged' : 'edited'}.mjs`)
  mkdirSync(directory, { recursive: true })
  const missing = new Set(edits)
  await build({
    entryPoints: [join(root, 'test/simulator/gateway-graph.ts')],
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
              if (!contents.includes(edit.text)) throw new Error(`${edit.file} has no "${edit.text}"`)
              contents = contents.replace(edit.text, () => edit.by)
              missing.delete(edit)
            }
            return { contents, loader: path.endsWith('x') ? 'tsx' : 'ts' }
          }),
      },
    ],
  })
  for (const { file } of missing) throw new Error(`${file} is not part of a gateway`)
  return outfile
}

export function removeBundle(path: string): void {
  rmSync(path, { force: true })
}

let lives = 0

/** Evaluates the bundle once more. */
export function loadGateway(path: string): Promise<GatewayGraph> {
  lives += 1
  return import(`${pathToFileURL(path).href}?life=${lives}`)
}
