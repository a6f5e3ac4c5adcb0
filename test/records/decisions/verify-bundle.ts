/** Runs the verifier of docs/verify/, which shares no code with the gateway. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { bursar } from '../../commands/bursar.ts'

/** Whether this machine has Python and the package that verifies signatures. */
export const canVerify = spawnSync('python3', ['-c', 'import nacl'], { stdio: 'ignore' }).status === 0

export interface Verification {
  readonly code: number
  readonly out: string
  readonly err: string
}

export function verifyBundle(bundle: string, ...options: readonly string[]): Promise<Verification> {
  return new Promise((resolve) => {
    execFile('python3', ['docs/verify/verify.py', bundle, ...options], (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, err }),
    )
  })
}

/** The books of this month, exported and recomputed: nothing is found. A machine without Python passes. */
export async function expectRecomputed(env: Readonly<Record<string, string>>): Promise<void> {
  if (!canVerify) return
  const directory = mkdtempSync(join(tmpdir(), 'bursar-books-'))
  try {
    const bundle = join(directory, 'books')
    const month = new Date().toISOString().slice(0, 7)
    const exported = await bursar(['export', '--month', month, '--out', bundle], env)
    expect(exported).toMatchObject({ code: 0, err: '' })
    expect(await verifyBundle(bundle)).toMatchObject({
      // First, so that what was found is told.
      err: expect.not.stringContaining('fault'),
      code: 0,
      out: expect.stringContaining('as recomputed'),
    })
  } finally {
    if (process.env.KEEP_BOOKS === undefined) rmSync(directory, { recursive: true, force: true })
  }
}
