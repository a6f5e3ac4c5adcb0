/** Script that each page of the console loads, compressed as it is served, from the build's own list of imports. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { gzipSync } from 'node:zlib'
import { z } from 'zod'

const FOLDER = '.build/console'

const metafile = z.object({
  outputs: z.record(
    z.string(),
    z.object({
      entryPoint: z.string().optional(),
      imports: z.array(z.object({ path: z.string(), kind: z.string() })),
    }),
  ),
})

export interface PageSize {
  readonly name: string
  /** Bytes of script that the page adds to the frame, which every page has. */
  readonly own: number
  /** Bytes of script of a direct visit. */
  readonly all: number
}

/** Measures the frame (`main`) and every page. Parts that are loaded later, such as charts, count for themselves. */
export function measureSizes(): PageSize[] {
  const { outputs } = metafile.parse(JSON.parse(readFileSync(`${FOLDER}/meta.json`, 'utf8')))
  const listImports = (path: string, kind: string) =>
    (outputs[path]?.imports ?? []).filter((one) => one.kind === kind).map((one) => one.path)
  const closure = (path: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(path)) return seen
    seen.add(path)
    for (const next of listImports(path, 'import-statement')) closure(next, seen)
    return seen
  }
  const bytes = (paths: Iterable<string>) =>
    [...paths].reduce((sum, path) => sum + gzipSync(readFileSync(path), { level: 9 }).length, 0)
  const main = `${FOLDER}/main.js`
  const frame = closure(main)
  const later = [...new Set([...Object.keys(outputs)].flatMap((path) => listImports(path, 'dynamic-import')))]
  const sizes = later.map((path) => {
    const parts = closure(path)
    const own = bytes([...parts].filter((part) => !frame.has(part)))
    return { name: basename(outputs[path]?.entryPoint ?? path), own, all: bytes(frame) + own }
  })
  const first = { name: 'main.tsx (the frame and home)', own: bytes(frame), all: bytes(frame) }
  return [first, ...sizes.sort((a, b) => b.own - a.own)]
}
