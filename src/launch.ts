#!/usr/bin/env node
/**
 * The executable: runs `main.cjs` beside it, or the smaller `proxy.cjs` for `bursar proxy`, with the code that V8 compiled for
 * it at the build, because compiling is a fifth of a start. Another version of Node, or one with other flags,
 * compiles as usual.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'

// The embedded database is WebAssembly, and these flags are part of what compiled code is valid for.
// Only its really hot functions are compiled a second time. By its own measure V8 optimizes so much in the first seconds
// that a start costs a second of CPU more, and 35 MB. The module is an installed package: its functions are validated
// when they are compiled, not all at once.
setFlagsFromString('--wasm-tiering-budget=100000000')
setFlagsFromString('--wasm-lazy-validation')

const [command, ...rest] = process.argv.slice(2)
const isProxy =
  command === 'proxy' && !rest.some((word) => ['--help', '-h', '--version', '-v'].includes(word))
const file = fileURLToPath(new URL(isProxy ? 'proxy.cjs' : 'main.cjs', import.meta.url))
// Code of another Node crashes the process: V8 compares its own version, which all of Node 20 share.
const codeFile = `${file}.${process.version}.code`

const script = new Script(
  // The build escapes everything that is not ASCII. One byte a character is half the memory.
  `(function (exports, require, module, __filename, __dirname, Import) {${readFileSync(file, 'latin1')}\n})`,
  {
    filename: file,
    cachedData: readCode(),
  },
)

function readCode(): Buffer | undefined {
  try {
    return readFileSync(codeFile)
  } catch {
    return undefined
  }
}

if (process.env.BURSAR_WRITE_CODE !== undefined)
  process.once('exit', () => writeFileSync(codeFile, script.createCachedData()))

const module = { exports: {} }
/** In place of `import()`, which a script from kept code does not have. */
const importModule = (name: string): Promise<unknown> => import(name)
script
  .runInThisContext()
  .call(module.exports, module.exports, createRequire(file), module, file, dirname(file), importModule)
