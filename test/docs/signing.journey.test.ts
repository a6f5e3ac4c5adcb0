/**
 * The programs of docs/signing.md print the documented vector, and the gateway's own client signs and verifies the
 * same.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createVerifier, httpbis } from 'http-message-signatures'
import { afterAll, describe, expect, it } from 'vitest'

const text = readFileSync('docs/signing.md', 'utf8')
const block = (language: string) => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(text)?.[1] ?? ''
const vector = block('text').trim()
const directory = mkdtempSync(join(tmpdir(), 'bursar-signing-'))
afterAll(() => rmSync(directory, { recursive: true }))

const hasPython = spawnSync('python3', ['-c', 'import cryptography']).status === 0

describe('the signing example', () => {
  it('prints its vector in TypeScript', () => {
    const file = join(directory, 'sign.mjs')
    writeFileSync(file, block('ts'))
    expect(execFileSync(process.execPath, [file], { encoding: 'utf8' }).trim()).toBe(vector)
  })

  it.skipIf(!hasPython)('prints its vector in Python', () => {
    const file = join(directory, 'sign.py')
    writeFileSync(file, block('python'))
    expect(execFileSync('python3', [file], { encoding: 'utf8' }).trim()).toBe(vector)
  })

  it('is verified by an independent library', async () => {
    const headers = Object.fromEntries(vector.split('\n').map((line) => line.split(/: (.*)/).slice(0, 2)))
    const x = 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs'
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
    const keyLookup = async () => ({ id: 'key', algs: ['ed25519'], verify: createVerifier(key, 'ed25519') })
    const request = { method: 'POST', url: 'http://127.0.0.1:8787/api/wallets/transfer', headers }
    // The vector has a fixed time.
    const tolerance = 100 * 365 * 86_400
    expect(await httpbis.verifyMessage({ keyLookup, tolerance, notAfter: 1795176000 }, request)).toBe(true)
    const other = { ...request, headers: { ...headers, 'idempotency-key': 'invoice-18' } }
    expect(await httpbis.verifyMessage({ keyLookup, tolerance, notAfter: 1795176000 }, other)).toBe(false)
  })
})
