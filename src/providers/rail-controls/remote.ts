/**
 * Rail controls of an external control plane (`RAIL_CONTROLS_URL`): GET answers `{ rails: [{ id, enabled, reason? }]
 * }`.
 */
import { z } from 'zod'
import { Failure } from '../../core/failures/failure.ts'
import { callProvider, parseRetryAfter } from '../http-client.ts'
import type { RailControls } from './port.ts'
import { controlsUnavailable } from './unavailable.ts'

const document = z.object({
  rails: z.array(z.object({ id: z.string(), enabled: z.boolean(), reason: z.string().nullish() })),
})

type Rails = z.output<typeof document>['rails']

/** The rail controls port over HTTP. @param timeoutMs time limit for the whole answer; payments wait for it. */
export function createRemoteRailControls({
  url,
  timeoutMs = 1000,
}: {
  readonly url: string
  readonly timeoutMs?: number
}): RailControls {
  return {
    read: async (rail) => {
      const rails = await readRails(url, timeoutMs)
      const [control, ...others] = rails.filter(({ id }) => id === rail)
      // Several entries for one rail may contradict each other; a wrong guess could move money on a disabled rail.
      if (control === undefined || others.length > 0)
        throw controlsUnavailable(
          `the control plane has ${others.length === 0 ? 'no' : 'several'} entries for ${rail}`,
          {},
        )
      return { rail, enabled: control.enabled, reason: control.reason ?? null }
    },
    write: async () => {
      throw new Failure('conflict', 'The rail controls belong to an external control plane.', {
        hint: 'Switch the rail there (RAIL_CONTROLS_URL).',
      })
    },
  }
}

async function readRails(url: string, timeoutMs: number): Promise<Rails> {
  try {
    const response = await callProvider({ url, headers: { accept: 'application/json' }, timeoutMs })
    if (response.ok) return document.parse(JSON.parse(response.text)).rails
    const retryAfter = parseRetryAfter(response)
    throw controlsUnavailable(`the control plane answered ${response.status}`, { retryAfter })
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    throw controlsUnavailable(`the control plane returned no usable answer within ${timeoutMs} ms`, { cause })
  }
}
