#!/usr/bin/env node
/**
 * Completes package-lock.json after an install on a registry that lacks the binaries of other platforms: npm then leaves
 * those optional packages out, and `npm ci` refuses the lock everywhere. Their versions are the ones that their parents pin;
 * os, cpu and libc follow from their names. Run it after every `npm install` that changed the lock.
 */
import { readFileSync, writeFileSync } from 'node:fs'

const file = new URL('../package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(file, 'utf8'))
const systems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const processors = { amd64: 'x64', x64: 'x64', arm64: 'arm64', arm: 'arm', ia32: 'ia32', ppc64: 'ppc64', riscv64: 'riscv64', s390x: 's390x' }

let added = 0
for (const parent of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const path = `node_modules/${name}`
    const words = name.split(/[/-]/)
    const os = systems.find((system) => words.includes(system))
    const cpu = words.map((word) => processors[word]).find((processor) => processor !== undefined)
    if (lock.packages[path] !== undefined || os === undefined || cpu === undefined) continue
    const libc = words.includes('musl') ? ['musl'] : os === 'linux' && words.some((word) => word.startsWith('gnu')) ? ['glibc'] : undefined
    lock.packages[path] = { version, cpu: [cpu], ...(parent.dev ? { dev: true } : {}), ...(libc ? { libc } : {}), optional: true, os: [os] }
    added += 1
  }
}
const sorted = Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1))
lock.packages = Object.fromEntries(sorted)
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
process.stdout.write(`${added} optional packages of other platforms added\n`)
