/** `bursar agent delegate`: signs a delegation to a new key, without asking the gateway. */
import { z } from 'zod'
import { delegate } from '../client/delegate.ts'
import { readKeyFile, requireNewFile, writeNewKey } from './key-file.ts'

const terms = z.strictObject({
  scopes: z.array(z.string()).default([]),
  policy: z.record(z.string(), z.unknown()).optional(),
  expiresAt: z.iso.datetime(),
  earmark: z.boolean().optional(),
  task: z.string().optional(),
})

/** @param data scopes, policy, `expiresAt`, `earmark` and `task` as JSON. @returns the exit code. @throws Error. */
export async function delegateAgent({
  origin,
  key: keyPath,
  name,
  out,
  data,
}: {
  readonly origin: string
  readonly key: string
  readonly name: string
  readonly out: string
  readonly data: string
}): Promise<number> {
  const { expiresAt, ...granted } = readTerms(data)
  const { keyId, privateKey, delegation } = readKeyFile(keyPath)
  requireNewFile(out)
  const { kty = '', crv = '', x = '', d = '' } = privateKey.export({ format: 'jwk' })
  const parent = { keyId, privateKey: { kty, crv, x, d }, delegation }
  const key = await delegate(parent, { url: origin, name, expiresAt: new Date(expiresAt), ...granted })
  writeNewKey(out, key)
  process.stdout.write(
    `${JSON.stringify({ name, keyId: key.keyId, publicKey: key.publicKey, delegation: key.delegation }, null, 2)}\n`,
  )
  process.stderr.write(`The private key is in ${out}. The gateway learns of it with its first request.\n`)
  return 0
}

function readTerms(data: string): z.output<typeof terms> {
  try {
    return terms.parse(JSON.parse(data))
  } catch (cause) {
    const [issue] = cause instanceof z.ZodError ? cause.issues : []
    const why = issue === undefined ? 'it is no JSON' : `${issue.path.join('.')}: ${issue.message}`
    throw new Error(
      `--data is not usable (${why}). Example: {"scopes": ["wallets:transfer"], "policy": {…}, "expiresAt": "2026-11-20T12:00:00Z"}`,
      { cause },
    )
  }
}
