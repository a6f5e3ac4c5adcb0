/**
 * A sanctions list in a file (`SANCTIONS_LIST`): JSON `{source, date, addresses[], names?[], name?}`. It is reloaded
 * as soon as the file changes, so that a new list applies from the next transfer.
 */
import { readFile, stat } from 'node:fs/promises'
import { z } from 'zod'
import { parseJson } from '../../core/base/json.ts'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Sanctions, SanctionsList } from './port.ts'

const text = z.string().trim().min(1).max(500)

/** A list without addresses is treated as a mistake, because it would allow everything. */
const document = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z][a-z0-9_-]{0,31}$/)
    .default('sanctions'),
  source: text,
  date: z.iso.date(),
  addresses: z
    .array(
      z
        .string()
        .regex(/^[\x21-\x7e]{8,128}$/)
        .refine((address) => !/^0x/i.test(address) || /^0x[0-9a-f]{40}$/i.test(address))
        .toLowerCase(),
    )
    .min(1)
    .transform((addresses) => new Set(addresses)),
  names: z.array(text).default([]),
})

export function createSanctionsFile({ path, log }: { readonly path: string; readonly log: Log }): Sanctions {
  let known: { readonly version: string; readonly list: Promise<SanctionsList> } | undefined
  const load = async (version: string): Promise<SanctionsList> => {
    const list = document.parse(parseJson(await readFile(path, 'utf8')))
    log.info(
      { version, source: list.source, date: list.date, addresses: list.addresses.size },
      'the sanctions list was read',
    )
    return list
  }
  return {
    latest: async () => {
      try {
        const version = await readVersion(path)
        if (known?.version !== version) known = { version, list: load(version) }
        return await known.list
      } catch (cause) {
        // The next call retries. The cause is logged for the operator; the failure does not name the file.
        known = undefined
        log.error({ err: cause, path }, 'the sanctions list cannot be read')
        throw new Failure(
          'screening_unavailable',
          'The sanctions list cannot be read; nothing was sent.',
          { retryAfter: 5, hint: 'Send the same request again later.' },
          { cause },
        )
      }
    },
  }
}

/** Identifies the state of a file, even after a replacement or two writes within a second. */
async function readVersion(path: string): Promise<string> {
  const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
  return [ino, size, mtimeNs, ctimeNs].join('-')
}
